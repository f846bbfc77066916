// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func projectRecords(t *testing.T, open func(*testing.T) store.Store) {
	t.Run("AreKeptByName", func(t *testing.T) { keptProjects(t, open(t)) })
	t.Run("UseIsThatOfTheRecords", func(t *testing.T) { projectUse(t, open(t)) })
	t.Run("CommandsAreCountedByDay", func(t *testing.T) { projectCommands(t, open(t)) })
}

func keptProjects(t *testing.T, s store.Store) {
	web := &project.Project{Name: "web", CreatedAt: epoch, CreatedBy: "ops", Quotas: project.Amounts{project.Sandboxes: 3, project.CPU: 0.25, project.Commands: 1e12}}
	api := &project.Project{Name: "api", CreatedAt: epoch.Add(time.Hour)}
	update(t, s, func(tx store.Tx) error {
		for _, p := range []*project.Project{web, api} {
			if err := tx.Projects().Insert(p); err != nil {
				return err
			}
		}
		if err := tx.Projects().Insert(web); !fault.Is(err, fault.Exists) {
			t.Errorf("a taken name: got %v", err)
		}
		return nil
	})
	api.Quotas[project.Volumes] = 7
	update(t, s, func(tx store.Tx) error { return tx.Projects().Update(api) })
	view(t, s, func(tx store.Tx) error {
		got, err := tx.Projects().List()
		wantSame(t, "the list", got, []*project.Project{api, web})
		if err != nil {
			return err
		}
		one, err := tx.Projects().Get("web")
		wantSame(t, "one", one, web)
		return err
	})
	update(t, s, func(tx store.Tx) error {
		for what, err := range map[string]error{
			"Update": tx.Projects().Update(&project.Project{Name: "none"}), "Delete": tx.Projects().Delete("none"),
		} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s of none: got %v", what, err)
			}
		}
		return tx.Projects().Delete("web")
	})
	view(t, s, func(tx store.Tx) error {
		if _, err := tx.Projects().Get("web"); !fault.Is(err, fault.NotFound) {
			t.Errorf("a deleted one: got %v", err)
		}
		return nil
	})
}

// projectUse puts a sandbox of every state into two projects: what the store sums up is what the nouns say of each.
func projectUse(t *testing.T, s store.Store) {
	want := map[string]project.Amounts{}
	add := func(name string, of project.Amounts) {
		a := want[name]
		for r, v := range of {
			a[r] += v
		}
		want[name] = a
	}
	n := 0
	update(t, s, func(tx store.Tx) error {
		for _, name := range []string{"web", "api"} {
			for _, cause := range []sandbox.Cause{"", sandbox.CauseRestore} {
				for _, state := range sandbox.States() {
					n++
					b := box(n)
					b.Project, b.State, b.StopCause, b.Mounts = name, state, cause, nil
					b.Limits = sandbox.Limits{CPU: 0.25 * float64(n), MemoryMB: 100 + n, DiskMB: 1000 + n, Pids: 10 + n}
					if err := tx.Sandboxes().Insert(b); err != nil {
						return err
					}
					add(name, project.Of(b))
				}
			}
			for i, auto := range []bool{true, false, false} {
				for j, state := range []sandbox.SnapshotState{sandbox.SnapshotCreating, sandbox.SnapshotReady, sandbox.SnapshotDeleting} {
					snap := &sandbox.Snapshot{ID: sandbox.ID(fmt.Sprintf("snap%s%d%d", name, i, j)), Project: name, Auto: auto, State: state, CreatedAt: epoch}
					if err := tx.Snapshots().Insert(snap); err != nil {
						return err
					}
				}
			}
			add(name, project.Amounts{project.Snapshots: 2})
			for i := range 3 {
				v := &sandbox.Volume{ID: sandbox.ID(fmt.Sprintf("vol%s%d", name, i)), Project: name, Name: fmt.Sprint("v", i), SizeMB: 10 * i, State: sandbox.VolumeReady, CreatedAt: epoch}
				if err := tx.Volumes().Insert(v); err != nil {
					return err
				}
				add(name, project.Amounts{project.Volumes: 1, project.Disk: float64(v.SizeMB)})
			}
			if err := tx.Webhooks().Insert(&store.Webhook{ID: "wh_" + name, Project: name, CreatedAt: epoch, UpdatedAt: epoch}); err != nil {
				return err
			}
		}
		return nil
	})
	add("", want["web"])
	add("", want["api"])
	want["none"] = project.Amounts{}
	view(t, s, func(tx store.Tx) error {
		for name, a := range want {
			got, err := tx.Projects().Use(name)
			if err != nil {
				return err
			}
			wantSame(t, "the use of "+name, got, a)
		}
		has, err := tx.Projects().Contents("web")
		wantSame(t, "what web has", has, map[string]int{"sandboxes": n / 2, "snapshots": 9, "volumes": 3, "webhooks": 1})
		if err != nil {
			return err
		}
		has, err = tx.Projects().Contents("none")
		wantSame(t, "what none has", has, map[string]int{})
		return err
	})
}

func projectCommands(t *testing.T, s store.Store) {
	count := func(name string, day int64) (n int64) {
		update(t, s, func(tx store.Tx) (err error) {
			n, err = tx.Projects().AddCommand(name, day)
			return err
		})
		return n
	}
	got := []int64{count("web", 5), count("web", 5), count("api", 5), count("web", 6), count("web", 6)}
	wantSame(t, "the counts", got, []int64{1, 2, 1, 1, 2})
	view(t, s, func(tx store.Tx) error {
		for _, c := range []struct {
			name      string
			day, want int64
		}{{"web", 6, 2}, {"web", 7, 0}, {"api", 5, 1}, {"none", 5, 0}} {
			n, err := tx.Projects().Commands(c.name, c.day)
			if err != nil || n != c.want {
				t.Errorf("%s on day %d: got %d, %v, want %d", c.name, c.day, n, err, c.want)
			}
		}
		return nil
	})
}
