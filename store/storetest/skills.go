// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/skill"
	"sandpit.dev/store"
)

// skillRecord is a record with every field set.
func skillRecord(n int, name string) *skill.Skill {
	return &skill.Skill{
		ID: fmt.Sprintf("0b9f4f9e-0000-4000-8000-%012d", n), Project: "default",
		Meta: skill.Meta{
			Name: name, Description: "says \"it\"\nwith € and a line", Author: "Alice", Version: "1.0", License: "MIT", Compatibility: "any",
			Tags: []string{"data", "two words"}, AllowedTools: []string{"Bash(git add:*)", "Read"},
		},
		Source: skill.Imported, Digest: "sha256:d", Size: 5, Text: "---\nname: x\n---\n",
		Files:     []skill.FileInfo{{Path: "SKILL.md", Size: 17}, {Path: "scripts/a \"b\".sh", Size: 1 << 20, Exec: true}},
		CreatedAt: epoch, UpdatedAt: epoch.Add(time.Second), CreatedBy: "alice",
	}
}

func skillRecords(t *testing.T, open func(*testing.T) store.Store) {
	put := func(t *testing.T, s store.Store, all ...*skill.Skill) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, r := range all {
				if err := tx.Skills().Insert(r, []byte("package of "+r.Name)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	list := func(t *testing.T, s store.Store, project string) (out []*skill.Skill) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { out, err = tx.Skills().List(project); return err })
		return out
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		whole, bare := skillRecord(1, "whole"), &skill.Skill{ID: "b", Project: "default", Meta: skill.Meta{Name: "bare"}, CreatedAt: epoch, UpdatedAt: epoch}
		put(t, s, whole, bare)
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Skills().Get(whole.ID)
			wantSame(t, "Get", got, whole)
			if err != nil {
				return err
			}
			got, err = tx.Skills().ByName("default", "bare")
			wantSame(t, "ByName", got, bare)
			if err != nil {
				return err
			}
			data, err := tx.Skills().Package(whole.ID)
			wantSame(t, "Package", string(data), "package of whole")
			return err
		})
		short := *whole
		short.Text = ""
		wantSame(t, "List, by name and without the text", list(t, s, "default"), []*skill.Skill{bare, &short})
	})
	t.Run("ALargePackageComesBackWhole", func(t *testing.T) {
		s := open(t)
		data := bytes.Repeat([]byte("\x00\xff0123456789"), skill.MaxBytes/12)
		update(t, s, func(tx store.Tx) error { return tx.Skills().Insert(skillRecord(1, "large"), data) })
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Skills().Package(skillRecord(1, "large").ID)
			if !bytes.Equal(got, data) {
				t.Errorf("got %d bytes back that are not the %d that were written", len(got), len(data))
			}
			return err
		})
	})
	t.Run("ANameIsOnceInAProject", func(t *testing.T) {
		s := open(t)
		first, other := skillRecord(1, "a"), skillRecord(2, "a")
		other.Project = "other"
		put(t, s, first, other)
		again := skillRecord(3, "a")
		wantCode(t, "a second one of the name", inUpdate(t, s, func(tx store.Tx) error { return tx.Skills().Insert(again, nil) }), fault.Exists)
		again = skillRecord(1, "b")
		wantCode(t, "a second one of the id", inUpdate(t, s, func(tx store.Tx) error { return tx.Skills().Insert(again, nil) }), fault.Exists)
		wantSame(t, "those of the other project", len(list(t, s, "other")), 1)
		view(t, s, func(tx store.Tx) error {
			_, err := tx.Skills().ByName("third", "a")
			wantCode(t, "ByName in another project", err, fault.NotFound)
			n, size, err := tx.Skills().Usage("default")
			wantSame(t, "Usage", []int64{int64(n), size}, []int64{1, 5})
			return err
		})
	})
	t.Run("Replace", func(t *testing.T) {
		s := open(t)
		was := skillRecord(1, "a")
		put(t, s, was)
		next := *was
		next.Meta = skill.Meta{Name: "a", Description: "another", Version: "2"}
		next.Source, next.Digest, next.Size, next.Files, next.Text, next.UpdatedAt = skill.Manual, "sha256:e", 7, nil, "text", epoch.Add(time.Hour)
		update(t, s, func(tx store.Tx) error { return tx.Skills().Replace(&next, []byte("another package")) })
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Skills().Get(was.ID)
			wantSame(t, "Get", got, &next)
			if err != nil {
				return err
			}
			data, err := tx.Skills().Package(was.ID)
			wantSame(t, "Package", string(data), "another package")
			return err
		})
		none := skillRecord(2, "b")
		wantCode(t, "Replace of none", inUpdate(t, s, func(tx store.Tx) error { return tx.Skills().Replace(none, nil) }), fault.NotFound)
		view(t, s, func(tx store.Tx) error {
			_, err := tx.Skills().Package(none.ID)
			wantCode(t, "its package", err, fault.NotFound)
			return nil
		})
	})
	t.Run("Delete", func(t *testing.T) {
		s := open(t)
		r := skillRecord(1, "a")
		put(t, s, r)
		update(t, s, func(tx store.Tx) error { return tx.Skills().Delete(r.ID) })
		wantSame(t, "List", len(list(t, s, "default")), 0)
		wantCode(t, "Delete of none", inUpdate(t, s, func(tx store.Tx) error { return tx.Skills().Delete(r.ID) }), fault.NotFound)
		view(t, s, func(tx store.Tx) error {
			_, err := tx.Skills().Package(r.ID)
			wantCode(t, "its package", err, fault.NotFound)
			return nil
		})
		put(t, s, r) // its name is free again
	})
}
