// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

var bob = access.Caller{Project: "default", Actor: "bob", Via: "rest", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}

// forever is a command that no signal but SIGKILL ends, and that says when it has come so far.
const forever = "trap '' TERM; echo up; while :; do read x < /dev/zero; done"

// up starts a command and returns when it has written its first line.
func (h *house) up(shell string, timeout time.Duration) sandbox.Process {
	h.t.Helper()
	rec, err := h.engine.StartProcess(h.t.Context(), alice, "box", engine.StartRequest{Shell: shell, StreamStdin: true, Timeout: timeout})
	if err != nil {
		h.t.Fatal(err)
	}
	h.heardOf(rec.ID)
	return rec
}

// heardOf returns when a process has written something.
func (h *house) heardOf(id string) {
	h.t.Helper()
	g, err := h.engine.Follow(h.t.Context(), alice, "box", id, engine.FollowRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer g.Close()
	_, _ = g.Run(h.t.Context(), engine.FollowSink{Frame: func(sandbox.Frame) error { return errSeen }})
}

// row is what the record of a command says once it is complete.
func (h *house) row(id sandbox.ID, processID string) *sandbox.Event {
	h.t.Helper()
	for {
		changed := h.store.Changed()
		var rows []*sandbox.Event
		err := h.store.View(h.t.Context(), func(tx store.Tx) (err error) {
			rows, _, err = tx.Events().List(store.EventQuery{Sandbox: id, ProcessID: processID, Limit: 1})
			return err
		})
		if err != nil || len(rows) != 1 {
			h.t.Fatal(rows, err)
		}
		if rows[0].Done {
			return rows[0]
		}
		<-changed
	}
}

func TestARecordTellsWhoEndedAProcess(t *testing.T) {
	t.Parallel()
	const patient = "trap 'exit 7' TERM; echo up; while :; do read -t 0.05 x < /dev/zero; done"
	for name, tc := range map[string]struct {
		shell   string
		timeout time.Duration
		end     func(h *house, id string) error
		want    sandbox.Signaled
		gone    bool
	}{
		"Kill": {shell: forever, want: sandbox.Signaled{By: "bob", With: "SIGKILL"}, end: func(h *house, id string) error {
			return h.engine.KillProcess(h.t.Context(), bob, "box", id)
		}},
		"KillAll": {shell: forever, want: sandbox.Signaled{By: "bob", With: "SIGKILL"}, end: func(h *house, id string) error {
			return h.engine.KillAll(h.t.Context(), bob, "box")
		}},
		"Signal": {shell: "echo up; exec sleep 1000", want: sandbox.Signaled{By: "bob", With: "SIGTERM"}, end: func(h *house, id string) error {
			return h.engine.SignalProcess(h.t.Context(), bob, "box", id, syscall.SIGTERM, false)
		}},
		"SignalThatIsCaught": {shell: patient, want: sandbox.Signaled{By: "bob", With: "SIGTERM"}, end: func(h *house, id string) error {
			return h.engine.SignalProcess(h.t.Context(), bob, "box", id, syscall.SIGTERM, false)
		}},
		"TheLastOfTwo": {shell: forever, want: sandbox.Signaled{By: "bob", With: "SIGKILL"}, end: func(h *house, id string) error {
			if err := h.engine.SignalProcess(h.t.Context(), alice, "box", id, syscall.SIGTERM, false); err != nil {
				return err
			}
			return h.engine.SignalProcess(h.t.Context(), bob, "box", id, syscall.SIGKILL, true)
		}},
		"ASignalThatEndsNothing": {shell: "echo up; read x; exit 3", end: func(h *house, id string) error {
			if err := h.engine.SignalProcess(h.t.Context(), bob, "box", id, syscall.SIGCONT, false); err != nil {
				return err
			}
			_, err := h.engine.WriteInput(h.t.Context(), alice, "box", id, engine.InputRequest{Data: []byte("\n"), End: true, Offset: -1})
			return err
		}},
		"Timeout": {shell: forever, timeout: time.Second, want: sandbox.Signaled{By: "system", With: "SIGKILL"}, end: func(h *house, id string) error {
			// The signal of a caller that it outlived is not what ended it.
			return h.engine.SignalProcess(h.t.Context(), bob, "box", id, syscall.SIGTERM, false)
		}},
		"Stop": {shell: forever, want: sandbox.Signaled{By: "bob", With: "SIGKILL"}, end: func(h *house, id string) error {
			_, err := h.engine.Stop(h.t.Context(), bob, "box")
			return err
		}},
		"StopThatIsHeeded": {shell: patient, want: sandbox.Signaled{By: "bob", With: "SIGTERM"}, end: func(h *house, id string) error {
			_, err := h.engine.Stop(h.t.Context(), bob, "box")
			return err
		}},
		"Rollback": {shell: forever, want: sandbox.Signaled{By: "bob", With: "SIGKILL"}, end: func(h *house, id string) error {
			_, err := h.engine.Rollback(h.t.Context(), bob, "box", "base")
			return err
		}},
		"Delete": {shell: forever, gone: true, want: sandbox.Signaled{By: "bob", With: "SIGKILL"}, end: func(h *house, id string) error {
			return h.engine.Delete(h.t.Context(), bob, "box")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, t.TempDir())
			s := h.create(engine.CreateRequest{Key: "box"})
			rec := h.up(tc.shell, tc.timeout)
			followed := make(chan sandbox.Result, 1)
			g, err := h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				defer g.Close()
				end, err := g.Run(t.Context(), engine.FollowSink{
					Frame: func(sandbox.Frame) error { return nil },
				})
				if err != nil {
					t.Error("the follower:", err)
				}
				followed <- end.Result
			}()
			if err := tc.end(h, rec.ID); err != nil {
				t.Fatal(err)
			}
			if got := (<-followed).Signaled; got != tc.want {
				t.Errorf("the follower says %+v, want %+v", got, tc.want)
			}
			if ev := h.row(s.ID, rec.ID); ev.Signaled != tc.want {
				t.Errorf("the row says %+v, want %+v (%+v)", ev.Signaled, tc.want, ev)
			}
			if tc.gone {
				return
			}
			wantSignaled(t, h, rec.ID, tc.want)
			h.restart()
			wantSignaled(t, h, rec.ID, tc.want)
		})
	}
}

func wantSignaled(t *testing.T, h *house, id string, want sandbox.Signaled) {
	t.Helper()
	rec, err := h.engine.Process(t.Context(), alice, "box", id)
	if err != nil || rec.Result == nil || rec.Result.Signaled != want {
		t.Errorf("its record: %+v, %v; want %+v", rec.Result, err, want)
	}
}

// The caller of a command that another one kills is told so with the result, and that of a shell's command, too.
func TestTheCallerOfACommandIsToldWhoKilledIt(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	want := sandbox.Signaled{By: "bob", With: "SIGKILL"}
	// killing runs a command by do, and kills it as bob once it has written something.
	killing := func(what string, do func(r engine.ExecRequest, sink func(sandbox.Frame) error) (sandbox.Result, error)) {
		var id string
		seen := make(chan struct{})
		killed := make(chan error, 1)
		go func() {
			<-seen
			killed <- h.engine.KillProcess(t.Context(), bob, "box", id)
		}()
		once := sync.OnceFunc(func() { close(seen) })
		res, err := do(engine.ExecRequest{Shell: forever, Timeout: time.Minute, Started: func(of string) { id = of }}, func(sandbox.Frame) error {
			once()
			return nil
		})
		once()
		if killErr := <-killed; err != nil || killErr != nil || res.Signaled != want {
			t.Errorf("%s: %+v, %v, %v; want %+v", what, res, err, killErr, want)
		}
	}
	killing("the command", func(r engine.ExecRequest, sink func(sandbox.Frame) error) (sandbox.Result, error) {
		res, err := h.engine.Exec(t.Context(), alice, "box", r, sink)
		return res.Result, err
	})
	killing("the shell's command", func(r engine.ExecRequest, sink func(sandbox.Frame) error) (sandbox.Result, error) {
		r.Shell = "echo up; sleep 1000"
		res, err := h.code.ShellExec(t.Context(), alice, "box", "main", r, sink)
		return res.Result, err
	})
}

// A signal to what has ended leaves the record as it is.
func TestASignalThatComesTooLateIsNotOnRecord(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	rec := h.up("echo up", 0)
	h.row(s.ID, rec.ID)
	if err := h.engine.SignalProcess(t.Context(), bob, "box", rec.ID, syscall.SIGTERM, false); err == nil {
		t.Error("a process that has ended took a signal")
	}
	if err := h.engine.KillProcess(t.Context(), bob, "box", rec.ID); err != nil {
		t.Error(err)
	}
	if ev := h.row(s.ID, rec.ID); ev.Signaled != (sandbox.Signaled{}) {
		t.Errorf("the row says %+v", ev.Signaled)
	}
}

// A server that is killed around a signal leaves a record that says who sent it.
func TestWhoSignalledOutlivesTheServer(t *testing.T) {
	skiptest.WithShort(t, "a server is killed around a signal")
	t.Parallel()
	for _, point := range []string{"signal.noted", "signal.sent"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			killAt(t, dir, point)
			h := open(t, dir)
			for _, ev := range h.events("") {
				if ev.Type == sandbox.EventExec && ev.Signaled != (sandbox.Signaled{By: "alice", With: "SIGTERM"}) {
					t.Errorf("the row says %+v", ev)
				}
			}
		})
	}
}
