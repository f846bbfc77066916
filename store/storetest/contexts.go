// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// codeContext is a record with every field set, of the sandbox numbered n.
func codeContext(n, of int) *sandbox.Context {
	return &sandbox.Context{
		ID: fmt.Sprintf("ctx%013d", n), Sandbox: boxID(of), Name: "main", Language: "python", Cwd: "/workspace", User: "sandbox",
		Env: map[string]string{"A": "1"}, Default: true, CreatedAt: epoch.Add(time.Duration(n)), UsedAt: epoch.Add(time.Hour),
		ProcessID: "process", Starts: 2, Cells: 3, Ended: "SIGKILL", RunningID: "cell", State: []byte{0, 1, 255},
	}
}

func contextRecords(t *testing.T, open func(*testing.T) store.Store) {
	add := func(t *testing.T, s store.Store, all ...*sandbox.Context) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, c := range all {
				if err := tx.Contexts().Insert(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	of := func(t *testing.T, s store.Store, n int) (got []*sandbox.Context) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { got, err = tx.Contexts().List(boxID(n)); return err })
		return got
	}
	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		bare := &sandbox.Context{ID: "bare", Sandbox: boxID(1), CreatedAt: epoch.Add(time.Hour)}
		add(t, s, codeContext(1, 1), bare, codeContext(3, 2))
		first := codeContext(1, 1)
		first.CreatedAt = epoch // in microseconds
		wantSame(t, "List", of(t, s, 1), []*sandbox.Context{first, bare})
	})
	t.Run("UpdateReplaces", func(t *testing.T) {
		s := open(t)
		add(t, s, codeContext(1, 1), codeContext(2, 1))
		c := &sandbox.Context{ID: codeContext(1, 1).ID, Sandbox: boxID(1), Name: "main", CreatedAt: epoch, Language: "bash", Cells: 9}
		update(t, s, func(tx store.Tx) error { return tx.Contexts().Update(c) })
		wantSame(t, "the one that was changed", of(t, s, 1)[0], c)
		wantSame(t, "the other", of(t, s, 1)[1].Language, "python")
	})
	t.Run("ATakenIdIsRefused", func(t *testing.T) {
		s := open(t)
		add(t, s, codeContext(1, 1))
		err := inUpdate(t, s, func(tx store.Tx) error { return tx.Contexts().Insert(codeContext(1, 2)) })
		wantCode(t, "Insert", err, fault.Exists)
	})
	t.Run("WhatIsMissingIsNotFound", func(t *testing.T) {
		s := open(t)
		add(t, s, codeContext(1, 1))
		for name, fn := range map[string]func(store.Tx) error{
			"Update":                  func(tx store.Tx) error { return tx.Contexts().Update(codeContext(2, 1)) },
			"Update of another's one": func(tx store.Tx) error { return tx.Contexts().Update(codeContext(1, 2)) },
			"Delete":                  func(tx store.Tx) error { return tx.Contexts().Delete(boxID(1), codeContext(2, 1).ID) },
			"Delete of another's one": func(tx store.Tx) error { return tx.Contexts().Delete(boxID(2), codeContext(1, 1).ID) },
		} {
			wantCode(t, name, inUpdate(t, s, fn), fault.NotFound)
		}
	})
	t.Run("TheyGoWithTheirSandbox", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1), box(2))
		add(t, s, codeContext(1, 1), codeContext(2, 1), codeContext(3, 2))
		update(t, s, func(tx store.Tx) error { return tx.Contexts().Delete(boxID(1), codeContext(2, 1).ID) })
		wantSame(t, "after Delete", len(of(t, s, 1)), 1)
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(1)) })
		wantSame(t, "of the deleted one", len(of(t, s, 1)), 0)
		wantSame(t, "of the other", len(of(t, s, 2)), 1)
	})
}
