// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ending is what all who tell of a process's end have to agree on.
type ending struct {
	ExitCode                         int
	Signal                           string
	Cause                            sandbox.Cause
	Detail                           string
	Stdout, Stderr                   int64
	StdoutTruncated, StderrTruncated bool
}

func endingBy(r sandbox.Result) ending {
	return ending{r.ExitCode, r.Signal, r.Cause, r.CauseDetail, r.StdoutBytes, r.StderrBytes, r.StdoutTruncated, r.StderrTruncated}
}

func TestAllAgreeOnHowAProcessEnded(t *testing.T) {
	t.Parallel()
	const out, errs = "five\n", "three!\n"
	for name, tc := range map[string]struct {
		die   func(t *testing.T, h *house, s *sandbox.Sandbox)
		cause sandbox.Cause
		gone  bool
	}{
		"TheSandboxIsKilled": {cause: sandbox.CauseOOM, die: func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if err := h.host.Kill(s.ID, runtime.Exit{Cause: sandbox.CauseOOM, Detail: "a test took its memory"}); err != nil {
				t.Fatal(err)
			}
		}},
		"Stop": {cause: sandbox.CauseStopped, die: func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
				t.Fatal(err)
			}
		}},
		"Delete": {cause: sandbox.CauseStopped, gone: true, die: func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, t.TempDir())
			s, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box"})
			if err != nil {
				t.Fatal(err)
			}
			rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{
				Shell: "trap '' TERM; echo five; echo 'three!' >&2; while :; do read x < /dev/zero; done", StreamStdin: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			g, err := h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			type end struct {
				engine.FollowEnd
				gaps []engine.Gap
				err  error
			}
			wrote, followed := make(chan struct{}), make(chan end, 1)
			go func() {
				var e end
				n := 0
				e.FollowEnd, e.err = g.Run(t.Context(), engine.FollowSink{
					Frame: func(f sandbox.Frame) error {
						if n += len(f.Data); n == len(out)+len(errs) {
							close(wrote)
						}
						return nil
					},
					Gap: func(g engine.Gap) error { e.gaps = append(e.gaps, g); return nil },
				})
				followed <- e
			}()
			<-wrote
			waited := make(chan sandbox.Process, 1)
			go func() {
				rec, err := h.engine.WaitProcess(context.WithoutCancel(t.Context()), alice, "box", rec.ID, time.Minute)
				if err != nil && !(tc.gone && fault.Is(err, fault.NotFound)) {
					t.Error("waiting:", err)
				}
				waited <- rec
			}()
			tc.die(t, h, s)
			f := <-followed
			if f.err != nil || !f.Ended {
				t.Fatalf("the follower: %+v", f)
			}
			want := endingBy(f.Result)
			if want.ExitCode != 137 || want.Signal != "SIGKILL" || want.Cause != tc.cause || want.Stdout != int64(len(out)) || want.Stderr != int64(len(errs)) {
				t.Errorf("the follower says %+v", want)
			}
			for _, g := range f.gaps {
				if !strings.Contains(g.Why, "went down") {
					t.Errorf("a gap of %d bytes is told for %q", g.Bytes, g.Why)
				}
			}
			w := <-waited
			switch {
			case tc.gone && w.ID == "": // it was gone before it was asked about
			case w.Result == nil || endingBy(*w.Result) != want || w.LastSeq != f.LastSeq && w.LastSeq != 0: // no row has that
				t.Errorf("who waits: %+v, last frame %d; the follower: %+v, %d", w.Result, w.LastSeq, want, f.LastSeq)
			}
			var rows []*sandbox.Event
			for done := false; !done; { // the commit follows the answer
				err := h.store.View(t.Context(), func(tx store.Tx) (err error) {
					rows, _, err = tx.Events().List(store.EventQuery{Sandbox: s.ID, ProcessID: rec.ID, Limit: 1})
					return err
				})
				if err != nil || len(rows) != 1 {
					t.Fatal(rows, err)
				}
				done = rows[0].Done
			}
			ev := rows[0]
			row := ending{ev.ExitCode, ev.Signal, ev.Cause, ev.Detail, ev.StdoutBytes, ev.StderrBytes, ev.StdoutTruncated, ev.StderrTruncated}
			if row != want {
				t.Errorf("the record says %+v, the follower %+v", row, want)
			}
			if tc.gone {
				return
			}
			if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
				t.Fatal(err)
			}
			later, err := h.engine.Process(t.Context(), alice, "box", rec.ID)
			if err != nil || later.Result == nil || endingBy(*later.Result) != want || later.LastSeq != f.LastSeq {
				t.Errorf("after a start: %+v, last frame %d, %v; the follower: %+v, %d", later.Result, later.LastSeq, err, want, f.LastSeq)
			}
			again, err := h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			e, err := again.Run(t.Context(), engine.FollowSink{Frame: func(sandbox.Frame) error { return nil }})
			if err != nil || endingBy(e.Result) != want || e.LastSeq != f.LastSeq {
				t.Errorf("a later follower: %+v, %v; the first: %+v", e, err, want)
			}
		})
	}
}

// Connections to an agent break, and it gives up what waits in it, before the engine hears that its sandbox went down:
// whoever asks meanwhile is told how the process ended, and not that a connection broke.
func TestABrokenConnectionWaitsForWhetherTheSandboxWentDown(t *testing.T) {
	for name, broken := range map[string]error{
		"broken":   errors.New("the connection was reset"),
		"given up": fault.New(fault.Canceled, "the request was canceled"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, t.TempDir())
			s := h.create(engine.CreateRequest{Key: "box"})
			rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "while :; do read x < /dev/zero; done"})
			if err != nil {
				t.Fatal(err)
			}
			h.recorded()
			var dials atomic.Int32
			h.faulty.set(func(_ context.Context, call string) error {
				if call != "dial" {
					return nil
				}
				switch dials.Add(1) {
				case 1:
				case 2:
					if err := h.host.Kill(s.ID, runtime.Exit{Cause: sandbox.CauseOOM, Detail: "a test took its memory"}); err != nil {
						t.Error(err)
					}
				default: // those of whoever else follows it
					return nil
				}
				return broken
			}, nil)
			got, err := h.engine.Process(t.Context(), alice, "box", rec.ID)
			if err != nil || got.ID != rec.ID {
				t.Errorf("of a process whose sandbox goes down: %+v, %v", got, err)
			}
		})
	}
}

func TestABrokenConnectionOfASandboxThatIsUpIsTold(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	var dials atomic.Int32
	h.faulty.set(func(_ context.Context, call string) error {
		if call == "dial" && dials.Add(1) == 1 {
			return errors.New("the connection was reset")
		}
		return nil
	}, nil)
	if _, err := h.engine.Processes(t.Context(), alice, "box"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want unavailable", err)
	}
	if all, err := h.engine.Processes(t.Context(), alice, "box"); err != nil || len(all) != 0 {
		t.Errorf("afterwards: %v, %v", all, err)
	}
}
