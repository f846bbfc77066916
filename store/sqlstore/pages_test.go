// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Each page that a commit changes is copied, summed and written while a caller
// waits: an index more on these paths is felt by everyone.
func TestPagesOfACommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandpit.db")
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	got := map[string][]int64{}
	commit := func(name string, fn func(store.Tx) error) {
		before := size()
		update(t, s, fn)
		if after := size(); after > before {
			got[name] = append(got[name], (after-before)/(4096+24))
		}
	}
	for i := range 600 {
		box := benchSandbox()
		box.State = sandbox.Creating
		e := benchExec(box)
		commit("create", func(tx store.Tx) error {
			if err := tx.Sandboxes().Insert(box); err != nil {
				return err
			}
			return tx.Events().Append(&sandbox.Event{Sandbox: box.ID, Project: box.Project, Type: sandbox.EventCreated, At: box.CreatedAt, OK: true})
		})
		box.State = sandbox.Running
		commit("created", func(tx store.Tx) error {
			if err := tx.Sandboxes().Update(box); err != nil {
				return err
			}
			return tx.Events().Append(&sandbox.Event{Sandbox: box.ID, Project: box.Project, Type: sandbox.EventStarted, At: box.CreatedAt, OK: true})
		})
		commit("begin", func(tx store.Tx) error { return tx.Events().Append(e) })
		e.Duration, e.StdoutBytes, e.OK = time.Second, 2, true
		commit("end", func(tx store.Tx) error {
			if err := tx.Events().Finish(e); err != nil {
				return err
			}
			return tx.Sandboxes().Tally(box)
		})
		if i%2 == 0 {
			commit("delete", func(tx store.Tx) error { return tx.Sandboxes().Delete(box.ID) })
		}
	}
	for name, most := range map[string]int64{"create": 9, "created": 5, "begin": 4, "end": 3, "delete": 6} {
		all := got[name]
		slices.Sort(all)
		if len(all) < 100 {
			t.Fatalf("%s: only %d commits could be measured", name, len(all))
		}
		if median := all[len(all)/2]; median > most {
			t.Errorf("%s: half of the commits wrote %d pages or more, want at most %d", name, median, most)
		}
	}
}
