// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// detached starts a process that has to be started.
func (h *host) detached(ref string, r v1.StartProcess) *client.Process {
	h.t.Helper()
	p, err := h.client.StartProcess(h.t.Context(), ref, r)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// box makes a small sandbox.
func (h *host) box() string {
	h.t.Helper()
	box, _, err := h.client.Create(h.t.Context(), v1.CreateSandbox{MemoryMB: new(64), DiskMB: new(256), Pids: new(40)})
	if err != nil {
		h.t.Fatal(err)
	}
	return box.ID
}

// until waits until a process has written text.
func until(ctx context.Context, p *client.Process, text string) error {
	var all bytes.Buffer
	for out, err := range p.Follow(ctx, client.FollowOptions{}) {
		if err != nil {
			return err
		}
		all.Write(out.Data)
		if strings.Contains(all.String(), text) {
			return nil
		}
	}
	return fault.New(fault.State, "it ended and wrote only %q", all.String())
}

// The reason why a process ended is true, with the evidence, on its record and in its event.
func TestEndsAreTruthful(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	for _, c := range []struct {
		name    string
		command string
		after   func(t *testing.T, ref string, p *client.Process) error // once it says "up"; nil: nothing is done
		timeout float64

		code          int
		signal, cause string
	}{
		{name: "ByItself", command: "exit 3", code: 3},
		{name: "BySuccess", command: "true", code: 0},
		{name: "ByASignalOfItsOwn", command: "kill -SEGV $$", code: 139, signal: "SIGSEGV"},
		{name: "ByOurSignal", command: "echo up; exec sleep 600", code: 143, signal: "SIGTERM", after: func(t *testing.T, _ string, p *client.Process) error {
			return p.Signal(t.Context(), "TERM", false)
		}},
		{name: "ByAKill", command: "echo up; exec sleep 600", code: 137, signal: "SIGKILL", cause: "killed", after: func(t *testing.T, _ string, p *client.Process) error {
			return p.Kill(t.Context())
		}},
		{name: "ByItsTimeLimit", command: "sleep 600", timeout: 0.3, code: 137, signal: "SIGKILL", cause: "timeout"},
		{name: "ByMemory", command: "exec python3 -c 'b = bytearray(400 << 20); print(len(b))'", code: 137, signal: "SIGKILL", cause: "oom"},
		{name: "ByPids", command: exhaust, code: 1, cause: "pids"},
		{name: "ByDisk", command: "exec head -c 900M /dev/zero > big", code: 1, cause: "disk"},
		{name: "ByAStop", command: "echo up; exec sleep 600", code: 143, signal: "SIGTERM", cause: "stopped", after: func(t *testing.T, ref string, _ *client.Process) error {
			_, err := h.client.Stop(t.Context(), ref)
			return err
		}},
		{name: "ByAStopThatItIgnores", command: "trap '' TERM; echo up; while :; do sleep 0.1; done", code: 137, signal: "SIGKILL", cause: "stopped", after: func(t *testing.T, ref string, _ *client.Process) error {
			_, err := h.client.Stop(t.Context(), ref)
			return err
		}},
		{name: "BySomebodyOnTheHost", command: "echo up; exec sleep 600", code: 137, signal: "SIGKILL", cause: "killed", after: func(*testing.T, string, *client.Process) error {
			return h.strike()
		}},
		{name: "ByTheHostWhileNoServerIsThere", command: "echo up; exec sleep 600", code: 137, signal: "SIGKILL", cause: "host", after: func(*testing.T, string, *client.Process) error {
			h.kill()
			err := h.strike()
			h.start()
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ref := h.box()
			r := v1.StartProcess{Command: &c.command}
			if c.timeout > 0 {
				r.TimeoutSeconds = &c.timeout
			}
			p := h.detached(ref, r)
			if c.after != nil {
				if err := until(ctx, p, "up"); err != nil {
					t.Fatal(err)
				}
				if err := c.after(t, ref, p); err != nil {
					t.Fatal(err)
				}
			}
			rec, err := h.client.OpenProcess(ref, p.ID()).Wait(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if *rec.ExitCode != c.code || rec.Signal != c.signal || rec.Cause != c.cause || (rec.CauseDetail == "") != (c.cause == "") {
				t.Errorf("the record: got %d, signal %q, cause %q (%q); want %d, %q, %q", *rec.ExitCode, rec.Signal, rec.Cause, rec.CauseDetail, c.code, c.signal, c.cause)
			}
			h.holdEvent(ref, p.ID(), c.code, c.signal, c.cause)
			if err := h.client.Delete(ctx, ref); err != nil {
				t.Error(err)
			}
		})
	}
}

// holdEvent checks the event of a process that has ended. It is committed after a waiting caller
// has its answer.
func (h *host) holdEvent(ref, id string, exit int, signal, cause string) {
	h.t.Helper()
	limit, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	for {
		page, err := h.client.ActivityPage(limit, ref, client.ActivityQuery{ProcessID: id})
		if err != nil {
			h.t.Errorf("the event: %v", err)
			return
		}
		if len(page.Items) != 1 {
			h.t.Errorf("there are %d events", len(page.Items))
			return
		}
		ev := page.Items[0]
		if ev.ExitCode == nil {
			continue
		}
		if *ev.ExitCode != exit || ev.Signal != signal || ev.Cause != cause || (ev.Detail == "") != (cause == "") {
			h.t.Errorf("the event: got %d, signal %q, cause %q (%q); want %d, %q, %q", *ev.ExitCode, ev.Signal, ev.Cause, ev.Detail, exit, signal, cause)
		}
		return
	}
}

// strike kills all that is in sandboxes, as a host that goes down does.
func (h *host) strike() error {
	procs, err := h.scope().Processes()
	if err != nil {
		return err
	}
	for _, p := range procs {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended with its sandbox
	}
	return nil
}

// What a program may do to its caller has an outcome with a name.
func TestProcessesThatBehaveBadly(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	ref := h.box()
	gone := func(t *testing.T, name string) { // a pattern that does not fit its own text
		t.Helper()
		if err := h.says(ctx, ref, "pgrep -fc '"+name+"' || true", "0\n"); err != nil {
			t.Errorf("something of it is left: %v", err)
		}
	}
	t.Run("EveryByteComesAsItWasWritten", func(t *testing.T) {
		p := h.detached(ref, v1.StartProcess{Argv: []string{"python3", "-c", "import os; [os.write(1 + n % 2, bytes([n])) for n in range(256)]"}})
		var got [2][]byte
		for out, err := range p.Follow(ctx, client.FollowOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			if out.Stderr {
				i = 1
			}
			got[i] = append(got[i], out.Data...)
		}
		for n := range 256 {
			if i := n % 2; len(got[i]) != 128 || got[i][n/2] != byte(n) {
				t.Fatalf("byte %d: got %d and %d bytes", n, len(got[0]), len(got[1]))
			}
		}
	})
	t.Run("ALineOf100MBIsKeptInPartAndTheRestCounted", func(t *testing.T) {
		const size, most = 100 << 20, 64 << 20
		// Of a quarter of the disk, which all logs share, one may have 5/8.
		roomy, _, err := h.client.Create(ctx, v1.CreateSandbox{MemoryMB: new(64), DiskMB: new(1024), Pids: new(40)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := h.client.Delete(ctx, roomy.ID); err != nil {
				t.Error(err)
			}
		}()
		p := h.detached(roomy.ID, v1.StartProcess{Command: new("head -c 100M /dev/zero | tr '\\0' x"), MaxStdoutBytes: new(int64(most))})
		var n int64
		var gap *v1.OutputGap
		for out, err := range p.Follow(ctx, client.FollowOptions{}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case out.Gap != nil:
				gap = out.Gap
			case out.Exit != nil:
				if *out.Exit.ExitCode != 0 || out.Exit.StdoutBytes != size || !out.Exit.StdoutTruncated {
					t.Errorf("got %+v", out.Exit)
				}
			default:
				n += int64(len(out.Data))
			}
		}
		if gap == nil || n+gap.Bytes != size || n != most {
			t.Errorf("got %d bytes and the gap %+v, of %d", n, gap, size)
		}
	})
	t.Run("AForkBombIsKilledWhole", func(t *testing.T) {
		p := h.detached(ref, v1.StartProcess{Argv: []string{"bash", "-c", "bomb() { bomb | bomb & }; bomb; echo up; sleep 600"}})
		if err := until(ctx, p, "up"); err != nil && !fault.Is(err, fault.State) {
			t.Fatal(err)
		}
		if err := p.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		gone(t, "[b]omb")
	})
	t.Run("ADeafOneIsKilled", func(t *testing.T) {
		p := h.detached(ref, v1.StartProcess{Command: new("trap '' TERM INT HUP; echo up; while :; do sleep 0.05; done")})
		if err := until(ctx, p, "up"); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(ctx, "TERM", false); err != nil {
			t.Error(err)
		}
		if rec, err := p.Get(ctx); err != nil || rec.Status != "running" {
			t.Errorf("after SIGTERM: got %+v, %v", rec, err)
		}
		if err := p.Kill(ctx); err != nil {
			t.Error(err)
		}
		if rec, err := p.Wait(ctx); err != nil || rec.Cause != "killed" {
			t.Errorf("got %+v, %v", rec, err)
		}
	})
	t.Run("ADaemonOutlivesItsStartAndNotItsKill", func(t *testing.T) {
		p := h.detached(ref, v1.StartProcess{Command: new("setsid sh -c 'exec sleep 4321 >/dev/null 2>&1 </dev/null &' & wait; echo started")})
		rec, err := p.Wait(ctx)
		if err != nil || *rec.ExitCode != 0 {
			t.Fatalf("got %+v, %v", rec, err)
		}
		// No caller waits for it to become what it is to be.
		if err := h.says(ctx, ref, "timeout 10 sh -c 'until pgrep -f \"^sleep 4321\"; do sleep 0.01; done' | wc -l", "1\n"); err != nil {
			t.Errorf("the daemon: %v", err)
		}
		if err := p.Kill(ctx); err != nil {
			t.Error(err)
		}
		gone(t, "[s]leep 4321")
		if rec, err := p.Get(ctx); err != nil || rec.Cause != "" || *rec.ExitCode != 0 {
			t.Errorf("the end that it had is changed: %+v, %v", rec, err)
		}
	})
	t.Run("AClosedInputIsState", func(t *testing.T) {
		p := h.detached(ref, v1.StartProcess{Command: new("exec <&-; echo up; exec sleep 600"), StreamStdin: new(true)})
		if err := until(ctx, p, "up"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write(ctx, []byte("x")); !fault.Is(err, fault.State) {
			t.Errorf("got %v", err)
		}
		if err := p.Kill(ctx); err != nil {
			t.Error(err)
		}
	})
}
