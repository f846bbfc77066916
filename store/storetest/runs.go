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

// run is a record with every field set, numbered n, of the sandbox of that number.
func run(n int) *sandbox.Run {
	at := epoch.Add(time.Duration(n) * time.Second)
	return &sandbox.Run{
		ID: fmt.Sprintf("run-%d", n), Project: "default", Sandbox: boxID(n), Identifier: fmt.Sprintf("key-%d", n),
		State: sandbox.RunFailed, Actor: "alice", Via: "mcp", User: "root", TTL: time.Hour + 1, GoOn: n%2 == 0, Locked: n%3 == 0, Canceled: n%5 == 0,
		Error: "command 0: exit 1", CreatedAt: at, StartedAt: at.Add(1e6), EndedAt: at.Add(2e6), DroppedAt: at.Add(3e6),
		Artifacts:     []sandbox.Artifact{{Path: "a/b c.txt", Size: 5, SHA256: "ab"}, {Path: "ü"}},
		ArtifactBytes: 5, ArtifactsKept: true, ArtifactsError: "too many", OutputBytes: int64(n) << 33,
		Commands: []sandbox.RunCommand{
			{
				Shell: "make\x00\xff", Cwd: "/workspace", Env: map[string]string{"A": "\xff"}, Timeout: 2*time.Minute + 1, AllowFailure: true,
				Status: sandbox.CommandTimedOut, ProcessID: "p", Frame: 9, Error: "none", ExitCode: 137, Signal: "SIGKILL", Cause: sandbox.CauseTimeout,
				StartedAt: at, EndedAt: at.Add(1e6), StdoutBytes: 1 << 33, StderrBytes: 2, StdoutTruncated: true, StderrTruncated: true,
			},
			{Argv: []string{"echo", "", "a\"b"}, Status: sandbox.CommandQueued},
		},
	}
}

// live is a run that has not ended.
func live(n int) *sandbox.Run {
	r := run(n)
	r.State, r.EndedAt, r.DroppedAt, r.ArtifactsKept = sandbox.RunRunning, time.Time{}, time.Time{}, false
	return r
}

func runRecords(t *testing.T, open func(*testing.T) store.Store) {
	add := func(t *testing.T, s store.Store, runs ...*sandbox.Run) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, r := range runs {
				if err := tx.Runs().Insert(r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	get := func(t *testing.T, s store.Store, id string) (got *sandbox.Run) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { got, err = tx.Runs().Get(id); return err })
		return got
	}
	listed := func(t *testing.T, s store.Store, q store.RunQuery) (ids []string) {
		t.Helper()
		view(t, s, func(tx store.Tx) error {
			page, _, err := tx.Runs().List(q)
			for _, r := range page {
				ids = append(ids, r.ID)
			}
			n, cerr := tx.Runs().Count(q)
			if cerr != nil || q.Limit == 0 && n != len(page) {
				t.Errorf("Count of %+v: got %d, %v, want %d", q, n, cerr, len(page))
			}
			return err
		})
		return ids
	}
	cut := func(r *sandbox.Run) *sandbox.Run { // to what the store keeps
		c := *r
		for _, at := range []*time.Time{&c.CreatedAt, &c.StartedAt, &c.EndedAt, &c.DroppedAt} {
			*at = at.Truncate(time.Microsecond)
		}
		return &c
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		bare := &sandbox.Run{ID: "bare", Project: "p"}
		for _, want := range []*sandbox.Run{run(1), bare} {
			add(t, s, want)
			got := get(t, s, want.ID)
			if got.Number == 0 || got.Number != want.Number {
				t.Errorf("the number: got %d, want %d, which Insert has set", got.Number, want.Number)
			}
			wantSame(t, "Get", got, cut(want))
		}
	})
	t.Run("ATakenIdIsRefused", func(t *testing.T) {
		s := open(t)
		add(t, s, run(1))
		wantCode(t, "Insert", inUpdate(t, s, func(tx store.Tx) error { return tx.Runs().Insert(run(1)) }), fault.Exists)
	})
	t.Run("UpdateReplacesAllButWhatIsForEver", func(t *testing.T) {
		s := open(t)
		first := run(1)
		add(t, s, first, run(2))
		next := &sandbox.Run{ID: first.ID, Project: "stolen", Identifier: "stolen", Sandbox: boxID(9), State: sandbox.RunCompleted, CreatedAt: epoch.Add(time.Hour), Error: "x"}
		update(t, s, func(tx store.Tx) error { return tx.Runs().Update(next) })
		want := *next
		want.Project, want.Identifier, want.CreatedAt, want.Number, want.Commands, want.DroppedAt = first.Project, first.Identifier, first.CreatedAt, first.Number, first.Commands, first.DroppedAt
		wantSame(t, "the one that was changed", get(t, s, first.ID), cut(&want))
		wantSame(t, "the other", get(t, s, run(2).ID).Error, run(2).Error)
	})
	t.Run("UpdateCommandReplacesOne", func(t *testing.T) {
		s := open(t)
		add(t, s, run(1))
		c := sandbox.RunCommand{Argv: []string{"true"}, Status: sandbox.CommandRunning, ProcessID: "q", Env: map[string]string{"B": ""}}
		update(t, s, func(tx store.Tx) error { return tx.Runs().UpdateCommand(run(1).ID, 1, &c) })
		got := get(t, s, run(1).ID).Commands
		wantSame(t, "the one that was changed", got[1], c)
		wantSame(t, "the other", got[0], run(1).Commands[0])
	})
	t.Run("WhatIsMissingIsNotFound", func(t *testing.T) {
		s := open(t)
		add(t, s, run(1))
		for name, fn := range map[string]func(store.Tx) error{
			"Get":                        func(tx store.Tx) error { _, err := tx.Runs().Get("x"); return err },
			"Update":                     func(tx store.Tx) error { return tx.Runs().Update(run(2)) },
			"UpdateCommand":              func(tx store.Tx) error { return tx.Runs().UpdateCommand(run(1).ID, 2, &sandbox.RunCommand{}) },
			"UpdateCommand of a missing": func(tx store.Tx) error { return tx.Runs().UpdateCommand("x", 0, &sandbox.RunCommand{}) },
			"Delete":                     func(tx store.Tx) error { return tx.Runs().Delete("x") },
		} {
			wantCode(t, name, inUpdate(t, s, fn), fault.NotFound)
		}
	})
	t.Run("EventsAreReadInOrderFromAnyOn", func(t *testing.T) {
		s := open(t)
		add(t, s, run(1), run(2))
		var want []*sandbox.RunEvent
		for seq := int64(1); seq <= 5; seq++ {
			e := &sandbox.RunEvent{Seq: seq, Type: sandbox.RunCommandStdout, At: epoch.Truncate(time.Microsecond), Command: 3, Truncated: seq == 5, Data: []byte{0, 255, byte(seq)}}
			want = append(want, e)
			update(t, s, func(tx store.Tx) error { return tx.Runs().Append(run(1).ID, e) })
		}
		events := func(run string, after int64, limit int) (got []*sandbox.RunEvent) {
			view(t, s, func(tx store.Tx) (err error) { got, err = tx.Runs().Events(run, after, limit); return err })
			return got
		}
		wantSame(t, "all", events(run(1).ID, 0, 100), want)
		wantSame(t, "after the second, two", events(run(1).ID, 2, 2), want[2:4])
		wantSame(t, "another's", len(events(run(2).ID, 0, 100)), 0)
		var last, none int64
		view(t, s, func(tx store.Tx) (err error) {
			if last, err = tx.Runs().LastSeq(run(1).ID); err == nil {
				none, err = tx.Runs().LastSeq(run(2).ID)
			}
			return err
		})
		wantSame(t, "LastSeq", []int64{last, none}, []int64{5, 0})
		wantCode(t, "a taken Seq", inUpdate(t, s, func(tx store.Tx) error { return tx.Runs().Append(run(1).ID, want[0]) }), fault.Exists)
		update(t, s, func(tx store.Tx) error { return tx.Runs().Delete(run(1).ID) })
		wantSame(t, "after Delete", len(events(run(1).ID, 0, 100)), 0)
	})
	t.Run("ListsSelect", func(t *testing.T) {
		s := open(t)
		other := run(3)
		other.Project = "other"
		add(t, s, run(1), run(2), other, live(4))
		for name, c := range map[string]struct {
			q    store.RunQuery
			want []string
		}{
			"all":             {store.RunQuery{}, []string{"run-4", "run-3", "run-2", "run-1"}},
			"oldest first":    {store.RunQuery{Oldest: true, Limit: 2}, []string{"run-1", "run-2"}},
			"of a project":    {store.RunQuery{Project: "default"}, []string{"run-4", "run-2", "run-1"}},
			"of a sandbox":    {store.RunQuery{Sandbox: boxID(2)}, []string{"run-2"}},
			"of another's":    {store.RunQuery{Sandbox: boxID(2), Project: "other"}, nil},
			"of a name":       {store.RunQuery{Project: "default", Identifier: "key-1"}, []string{"run-1"}},
			"of another name": {store.RunQuery{Project: "default", Identifier: "key-3"}, nil},
			"live":            {store.RunQuery{Live: true}, []string{"run-4"}},
			"ended":           {store.RunQuery{Ended: true, Project: "default"}, []string{"run-2", "run-1"}},
			"kept":            {store.RunQuery{Kept: true, Project: "default"}, []string{"run-2", "run-1"}},
			"dropped":         {store.RunQuery{Dropped: true}, []string{"run-3", "run-2", "run-1"}},
			"ended before":    {store.RunQuery{EndedBefore: run(2).EndedAt}, []string{"run-1"}},
		} {
			wantSame(t, name, listed(t, s, c.q), c.want)
		}
		var cursor string
		var got []string
		for {
			view(t, s, func(tx store.Tx) (err error) {
				var page []*sandbox.Run
				page, cursor, err = tx.Runs().List(store.RunQuery{Limit: 1, Cursor: cursor})
				for _, r := range page {
					got = append(got, r.ID)
				}
				return err
			})
			if cursor == "" {
				break
			}
		}
		wantSame(t, "page by page", got, []string{"run-4", "run-3", "run-2", "run-1"})
		err := s.View(t.Context(), func(tx store.Tx) error {
			_, _, err := tx.Runs().List(store.RunQuery{Cursor: "nonsense"})
			return err
		})
		wantCode(t, "a cursor of nobody's", err, fault.Invalid)
	})
	t.Run("DropMarksThoseOfASandboxOnce", func(t *testing.T) {
		s := open(t)
		add(t, s, live(1), live(2))
		for i, at := range []time.Time{epoch, epoch.Add(time.Hour)} {
			update(t, s, func(tx store.Tx) error {
				n, err := tx.Runs().Drop(boxID(1), at)
				wantSame(t, "how many", n, 1-i)
				return err
			})
		}
		wantSame(t, "its own", get(t, s, "run-1").DroppedAt, epoch.Truncate(time.Microsecond))
		wantSame(t, "another's", get(t, s, "run-2").DroppedAt.IsZero(), true)
	})
	t.Run("HeldIsWhatIsKeptInAll", func(t *testing.T) {
		s := open(t)
		add(t, s, run(1), run(2), live(3))
		var artifacts, output int64
		view(t, s, func(tx store.Tx) (err error) { artifacts, output, err = tx.Runs().Held(); return err })
		wantSame(t, "artifacts", artifacts, int64(10))
		wantSame(t, "output", output, int64(6)<<33)
	})
}
