// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func benchStore(b *testing.B) *Store {
	s, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "sandpit.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func benchSandbox() *sandbox.Sandbox {
	now := time.Now()
	return &sandbox.Sandbox{
		ID: sandbox.NewID(), Project: "default", Key: "session-" + string(sandbox.NewID()), Image: "python", ImageDigest: "sha256:0123456789abcdef",
		AskedImage: "python-3.12", Runtime: "native", Limits: sandbox.DefaultLimits(), Env: map[string]string{"A": "b"},
		Metadata: map[string]string{"owner": "alice"}, Clocks: sandbox.Clocks{IdleTimeout: time.Hour}, State: sandbox.Running, Handle: []byte(`{"pid":1234}`),
		CreatedAt: now, UpdatedAt: now, StartedAt: now, LastActivity: now,
	}
}

func benchExec(s *sandbox.Sandbox) *sandbox.Event {
	return &sandbox.Event{
		Sandbox: s.ID, Project: s.Project, Type: sandbox.EventExec, At: time.Now(), Actor: "alice", Via: "rest",
		ProcessID: sandbox.NewProcessID(), Command: "python -c 'print(1)'", User: "sandbox", Cwd: "/workspace",
	}
}

func update(b testing.TB, s *Store, fn func(store.Tx) error) {
	b.Helper()
	if err := s.Update(b.Context(), fn); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCreate is the first of a create's two commits: record and event.
func BenchmarkCreate(b *testing.B) {
	s := benchStore(b)
	b.ReportAllocs()
	for b.Loop() {
		box := benchSandbox()
		update(b, s, func(tx store.Tx) error {
			if err := tx.Sandboxes().Insert(box); err != nil {
				return err
			}
			return tx.Events().Append(&sandbox.Event{Sandbox: box.ID, Project: box.Project, Type: sandbox.EventCreated, At: box.CreatedAt, OK: true})
		})
	}
}

// BenchmarkChange is a create's second commit.
func BenchmarkChange(b *testing.B) {
	s := benchStore(b)
	box := benchSandbox()
	update(b, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(box) })
	b.ReportAllocs()
	for b.Loop() {
		update(b, s, func(tx store.Tx) error { return tx.Sandboxes().Update(box) })
	}
}

// BenchmarkExec is both commits of a command.
func BenchmarkExec(b *testing.B) {
	s := benchStore(b)
	box := benchSandbox()
	update(b, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(box) })
	b.ReportAllocs()
	for b.Loop() {
		e := benchExec(box)
		update(b, s, func(tx store.Tx) error { return tx.Events().Append(e) })
		e.Duration, e.StdoutBytes, e.OK = time.Second, 2, true
		update(b, s, func(tx store.Tx) error {
			if err := tx.Events().Finish(e); err != nil {
				return err
			}
			return tx.Sandboxes().Tally(box)
		})
	}
}

// BenchmarkAppend is the first commit of a command.
func BenchmarkAppend(b *testing.B) {
	s := benchStore(b)
	box := benchSandbox()
	b.ReportAllocs()
	for b.Loop() {
		e := benchExec(box)
		update(b, s, func(tx store.Tx) error { return tx.Events().Append(e) })
	}
}

func BenchmarkGet(b *testing.B) {
	s := benchStore(b)
	box := benchSandbox()
	update(b, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(box) })
	b.ReportAllocs()
	for b.Loop() {
		if err := s.View(b.Context(), func(tx store.Tx) error { _, err := tx.Sandboxes().Get(box.ID); return err }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenAgain(b *testing.B) {
	path := filepath.Join(b.TempDir(), "sandpit.db")
	for b.Loop() {
		s, err := Open(b.Context(), Options{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
	}
}

func BenchmarkOpenNew(b *testing.B) {
	for b.Loop() {
		s, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "sandpit.db")})
		if err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
	}
}

// BenchmarkAmong100000 is what a listing costs among so many records.
func BenchmarkAmong100000(b *testing.B) {
	s := benchStore(b)
	const n = 100_000
	for done := 0; done < n; {
		update(b, s, func(tx store.Tx) error {
			for range 1000 {
				box := benchSandbox()
				box.State, box.StopCause, box.StopDetail = sandbox.Stopped, sandbox.CauseIdle, "idle for 30 minutes"
				if done%1000 == 0 {
					box.State = sandbox.Running
				}
				box.CreatedAt = box.CreatedAt.Add(time.Duration(done) * time.Second)
				if err := tx.Sandboxes().Insert(box); err != nil {
					return err
				}
				done++
			}
			return nil
		})
	}
	for name, fn := range map[string]func(store.Sandboxes) error{
		"List50": func(q store.Sandboxes) error {
			_, _, err := q.List(store.SandboxQuery{Project: "default"})
			return err
		},
		"List50Running": func(q store.Sandboxes) error {
			_, _, err := q.List(store.SandboxQuery{Project: "default", States: []sandbox.State{sandbox.Running}})
			return err
		},
		"Offset": func(q store.Sandboxes) error {
			_, _, err := q.List(store.SandboxQuery{Project: "default", Offset: n - 50})
			return err
		},
		"SearchNothing": func(q store.Sandboxes) error {
			_, _, err := q.List(store.SandboxQuery{Project: "default", Search: "nothing"})
			return err
		},
		"Count":    func(q store.Sandboxes) error { _, err := q.Count(store.SandboxQuery{Project: "default"}); return err },
		"CountAll": func(q store.Sandboxes) error { _, err := q.Count(store.SandboxQuery{}); return err },
		"CountSearch": func(q store.Sandboxes) error {
			_, err := q.Count(store.SandboxQuery{Project: "default", Search: "session-a"})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := s.View(b.Context(), func(tx store.Tx) error { return fn(tx.Sandboxes()) }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
