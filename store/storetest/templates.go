// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// templateRecord is a version with every field set.
func templateRecord(n int, name string) *template.Template {
	return &template.Template{
		ID: fmt.Sprintf("tmpl_%d", n), Project: "default", Name: name,
		Spec: template.Spec{
			Description: "says \"it\"\nwith € and <b>", Image: "python", Limits: sandbox.Limits{CPU: 0.5, MemoryMB: 256, Pids: 64},
			Env:       map[string]string{"A": "1", "B": "two words"},
			Network:   &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: []string{"example.org"}, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
			Volumes:   []template.Volume{{Volume: "data", Path: "/data", Sub: "a", ReadOnly: true}},
			Start:     sandbox.Start{Command: "serve", Ready: sandbox.Probe{Port: 80, Interval: time.Second, Timeout: time.Minute}},
			ForSkills: []string{"pdf"}, Steps: []string{"true", "echo \"x\""}, Dockerfile: "FROM a\n", Contexts: []string{"c"}, Of: "dddddddddddddddd", Disk: "aaaaaaaaaaaaaaaa", Origin: template.Configuration,
		},
		Status: template.Building, Snapshot: "bbbbbbbbbbbbbbbb", Image: "sha256:cc", Inactive: true,
		Failure:   &template.Failure{Step: 2, Command: "false", ExitCode: 1, Output: "x\ny", Reason: "it ended"},
		CreatedAt: epoch, CreatedBy: "alice",
	}
}

func templateRecords(t *testing.T, open func(*testing.T) store.Store) {
	put := func(t *testing.T, s store.Store, all ...*template.Template) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, r := range all {
				if err := tx.Templates().Insert(r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	versions := func(t *testing.T, s store.Store, project, name string) (out []int) {
		t.Helper()
		view(t, s, func(tx store.Tx) error {
			all, err := tx.Templates().Versions(project, name)
			for _, r := range all {
				out = append(out, r.Version)
			}
			return err
		})
		return out
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		whole, bare := templateRecord(1, "whole"), &template.Template{ID: "b", Project: template.Server, Name: "bare", Status: template.Ready, CreatedAt: epoch}
		put(t, s, whole, bare)
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Templates().Get(whole.ID)
			wantSame(t, "Get", got, whole)
			if err != nil {
				return err
			}
			all, err := tx.Templates().List(template.Server)
			wantSame(t, "List of the server's", all, []*template.Template{bare})
			if err != nil {
				return err
			}
			if all, err = tx.Templates().OfDisk(whole.Snapshot); err != nil {
				return err
			}
			wantSame(t, "OfDisk", all, []*template.Template{whole})
			if all, err = tx.Templates().OfDisk(""); err != nil {
				return err
			}
			wantSame(t, "OfDisk of none", len(all), 0)
			if all, err = tx.Templates().OfImage(whole.Image); err != nil {
				return err
			}
			wantSame(t, "OfImage", all, []*template.Template{whole})
			if all, err = tx.Templates().OfImage(""); err != nil {
				return err
			}
			wantSame(t, "OfImage of none", len(all), 0)
			all, err = tx.Templates().Building()
			wantSame(t, "Building", all, []*template.Template{whole})
			return err
		})
	})
	t.Run("NoVersionIsGivenTwice", func(t *testing.T) {
		s := open(t)
		other := templateRecord(3, "a")
		other.Project = "other"
		put(t, s, templateRecord(1, "a"), templateRecord(2, "a"), other)
		wantSame(t, "versions, newest first", versions(t, s, "default", "a"), []int{2, 1})
		wantSame(t, "of another project", versions(t, s, "other", "a"), []int{1})
		update(t, s, func(tx store.Tx) error { return tx.Templates().Delete("tmpl_2") })
		put(t, s, templateRecord(4, "a"))
		wantSame(t, "after a delete", versions(t, s, "default", "a"), []int{3, 1})
		wantCode(t, "a second one of the id", inUpdate(t, s, func(tx store.Tx) error { return tx.Templates().Insert(templateRecord(1, "b")) }), fault.Exists)
		wantSame(t, "its name has none", versions(t, s, "default", "b"), []int(nil))
		wantCode(t, "Delete of none", inUpdate(t, s, func(tx store.Tx) error { return tx.Templates().Delete("tmpl_2") }), fault.NotFound)
	})
	t.Run("VersionsOfOneNameAtOnce", func(t *testing.T) {
		s := open(t)
		var wg sync.WaitGroup
		for n := range 20 {
			wg.Go(func() {
				if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Templates().Insert(templateRecord(n, "a")) }); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got := versions(t, s, "default", "a")
		for n := range 20 {
			if len(got) != 20 || got[n] != 20-n {
				t.Fatalf("got the versions %v", got)
			}
		}
	})
	t.Run("ABuildEndsOnce", func(t *testing.T) {
		s := open(t)
		r := templateRecord(1, "a")
		put(t, s, r)
		end := *r
		end.Status, end.Snapshot, end.Image, end.Failure = template.Ready, "eeeeeeeeeeeeeeee", "sha256:ee", nil
		update(t, s, func(tx store.Tx) error { return tx.Templates().Finish(&end) })
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Templates().Get(r.ID)
			wantSame(t, "Get", got, &end)
			return err
		})
		wantCode(t, "Finish of what is finished", inUpdate(t, s, func(tx store.Tx) error { return tx.Templates().Finish(r) }), fault.Conflict)
		wantCode(t, "Finish of none", inUpdate(t, s, func(tx store.Tx) error { return tx.Templates().Finish(templateRecord(2, "b")) }), fault.NotFound)
	})
	t.Run("ActiveAndNot", func(t *testing.T) {
		s := open(t)
		r := templateRecord(1, "a")
		put(t, s, r)
		for _, inactive := range []bool{false, false, true} {
			update(t, s, func(tx store.Tx) error { return tx.Templates().SetInactive(r.ID, inactive) })
			view(t, s, func(tx store.Tx) error {
				got, err := tx.Templates().Get(r.ID)
				wantSame(t, "Inactive", got.Inactive, inactive)
				return err
			})
		}
		wantCode(t, "SetInactive of none", inUpdate(t, s, func(tx store.Tx) error { return tx.Templates().SetInactive("tmpl_2", true) }), fault.NotFound)
	})
	t.Run("Default", func(t *testing.T) {
		s := open(t)
		read := func(project string) (name string) {
			view(t, s, func(tx store.Tx) (err error) { name, err = tx.Templates().Default(project); return err })
			return name
		}
		set := func(project, name string) {
			update(t, s, func(tx store.Tx) error { return tx.Templates().SetDefault(project, name) })
		}
		wantSame(t, "at first", read("default"), "")
		set("default", "a")
		set("default", "b")
		set(template.Server, "c")
		wantSame(t, "of the project", read("default"), "b")
		wantSame(t, "of the server", read(template.Server), "c")
		set("default", "")
		set("default", "")
		wantSame(t, "when it is none", read("default"), "")
	})
	t.Run("PoolSizes", func(t *testing.T) {
		s := open(t)
		p := store.PoolSize{Name: "web", Image: "python", Limits: sandbox.Limits{CPU: 1, MemoryMB: 2, DiskMB: 3, Pids: 4}, Template: "web@2", Min: 1, Max: 5, Refill: 2}
		small := store.PoolSize{Name: "a"}
		update(t, s, func(tx store.Tx) error {
			if err := tx.Pools().Put(store.PoolSize{Name: "web", Min: 9}); err != nil {
				return err
			}
			if err := tx.Pools().Put(small); err != nil {
				return err
			}
			return tx.Pools().Put(p)
		})
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Pools().List()
			wantSame(t, "List", got, []store.PoolSize{small, p})
			return err
		})
	})
}
