// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What follows is the contract of package runtime as far as the fake can keep
// it without a view of the sandbox's own: its commands see the host.

func host(t *testing.T, dir string) *memory.Host {
	t.Helper()
	h, err := memory.Open(dir, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func create(t *testing.T, d runtime.Driver) runtime.Instance {
	t.Helper()
	i, err := d.Create(t.Context(), runtime.Spec{ID: sandbox.NewID()})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func output(t *testing.T, i runtime.Instance, shell string) string {
	t.Helper()
	p, err := agent.NewClient(i.Dial).Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: shell})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	var out []byte
	for {
		f, err := p.Next(t.Context())
		if err == io.EOF {
			return string(out)
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f.Data...)
	}
}

func wantCode(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func wantExit(t *testing.T, i runtime.Instance, want sandbox.Cause) {
	t.Helper()
	e, err := i.Wait(t.Context())
	if err != nil || e.Cause != want {
		t.Errorf("Wait: got %+v, %v; want the cause %s", e, err, want)
	}
}

func TestProbeAnswersForEveryFeature(t *testing.T) {
	caps, err := host(t, t.TempDir()).Driver().Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[runtime.Feature]fault.Code{}
	want := map[runtime.Feature]fault.Code{}
	for _, f := range runtime.Features() {
		got[f], want[f] = "missing", fault.Unsupported
		if reason, ok := caps[f]; ok {
			got[f] = fault.Of(reason)
		}
	}
	for _, f := range []runtime.Feature{runtime.Reopen, runtime.WatchFiles, runtime.Pause, runtime.Resize, runtime.Snapshots, runtime.Volumes, runtime.VolumeParts} {
		want[f] = ""
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestCreate(t *testing.T) {
	t.Run("GivesAnInstanceThatAnswers", func(t *testing.T) {
		i := create(t, host(t, t.TempDir()).Driver())
		if got := output(t, i, "echo hello"); got != "hello\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("OfATakenIdIsExists", func(t *testing.T) {
		d := host(t, t.TempDir()).Driver()
		i := create(t, d)
		for range 2 {
			_, err := d.Create(t.Context(), runtime.Spec{ID: i.Handle().ID})
			wantCode(t, err, fault.Exists)
			if err := i.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("OfOneIdByManyIsDoneOnce", func(t *testing.T) {
		d := host(t, t.TempDir()).Driver()
		id := sandbox.NewID()
		var made atomic.Int64
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				_, err := d.Create(t.Context(), runtime.Spec{ID: id})
				if err == nil {
					made.Add(1)
				} else if !fault.Is(err, fault.Exists) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if made.Load() != 1 {
			t.Errorf("made %d", made.Load())
		}
	})
	t.Run("ThatIsCanceledLeavesNothing", func(t *testing.T) {
		dir := t.TempDir()
		d := host(t, dir).Driver()
		for n := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*20*time.Microsecond)
			i, err := d.Create(ctx, runtime.Spec{ID: sandbox.NewID()})
			cancel()
			if err == nil {
				err = i.Remove(t.Context())
			} else if errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("left: %v, %v", entries, err)
		}
	})
	t.Run("OfABadIdIsRefused", func(t *testing.T) {
		_, err := host(t, t.TempDir()).Driver().Create(t.Context(), runtime.Spec{ID: "../x"})
		wantCode(t, err, fault.Invalid)
	})
}

func TestStop(t *testing.T) {
	d := host(t, t.TempDir()).Driver()
	i := create(t, d)
	output(t, i, "echo kept > file")
	for range 2 {
		if err := i.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	wantExit(t, i, sandbox.CauseStopped)
	_, err := i.Dial(t.Context())
	wantCode(t, err, fault.State)
	if err := i.Start(t.Context(), runtime.Spec{}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, i.Start(t.Context(), runtime.Spec{}), fault.State)
	if got := output(t, i, "cat file"); got != "kept\n" {
		t.Errorf("got %q", got)
	}
}

func TestStopWithGraceAsksFirst(t *testing.T) {
	i := create(t, host(t, t.TempDir()).Driver())
	p, err := agent.NewClient(i.Dial).Start(t.Context(), agent.Command{
		ID: sandbox.NewProcessID(), Shell: "trap 'echo asked > asked; exit' TERM; echo; while :; do sleep 0.02; done"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if _, err := p.Next(t.Context()); err != nil { // it has set its trap
		t.Fatal(err)
	}
	if err := i.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context(), runtime.Spec{}); err != nil {
		t.Fatal(err)
	}
	if got := output(t, i, "cat asked"); got != "asked\n" {
		t.Errorf("got %q", got)
	}
}

func TestWait(t *testing.T) {
	t.Run("EndsWithItsContext", func(t *testing.T) {
		i := create(t, host(t, t.TempDir()).Driver())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := i.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("TellsAllWhoWaitWhatTheHostDid", func(t *testing.T) {
		h := host(t, t.TempDir())
		i := create(t, h.Driver())
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { wantExit(t, i, sandbox.CauseOOM) })
		}
		if err := h.Kill(i.Handle().ID, runtime.Exit{Cause: sandbox.CauseOOM}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		wantCode(t, h.Kill(sandbox.NewID(), runtime.Exit{}), fault.NotFound)
	})
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	d := host(t, dir).Driver()
	i := create(t, d)
	for range 2 {
		if err := i.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.Open(t.Context(), i.Handle())
	wantCode(t, err, fault.NotFound)
	wantCode(t, i.Start(t.Context(), runtime.Spec{}), fault.NotFound)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestARestartOfTheServer(t *testing.T) {
	h := host(t, t.TempDir())
	first := h.Driver()
	up, down := create(t, first), create(t, first)
	output(t, up, "echo kept > file")
	if err := down.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := h.Driver()
	list, err := second.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Errorf("List: %v, %v", list, err)
	}
	again, err := second.Open(t.Context(), up.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, again, "cat file"); got != "kept\n" {
		t.Errorf("got %q", got)
	}
	still, err := second.Open(t.Context(), down.Handle())
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, still, sandbox.CauseStopped)
}

func TestARestartOfTheHost(t *testing.T) {
	dir := t.TempDir()
	h := host(t, dir)
	up, down := create(t, h.Driver()), create(t, h.Driver())
	output(t, up, "echo kept > file")
	if err := down.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	// As a process leaves it that was killed: nothing says how it went down.
	if err := os.Remove(filepath.Join(dir, string(up.Handle().ID), "exit")); err != nil {
		t.Fatal(err)
	}
	d := host(t, dir).Driver()
	again, err := d.Open(t.Context(), up.Handle())
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, again, sandbox.CauseHost)
	still, err := d.Open(t.Context(), down.Handle())
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, still, sandbox.CauseStopped)
	if err := again.Start(t.Context(), runtime.Spec{}); err != nil {
		t.Fatal(err)
	}
	if got := output(t, again, "cat file"); got != "kept\n" {
		t.Errorf("got %q", got)
	}
}

func TestAHalfThatACrashLeftIsListedAndRemoved(t *testing.T) {
	dir := t.TempDir()
	id := sandbox.NewID()
	if err := os.Mkdir(filepath.Join(dir, string(id)), 0o755); err != nil {
		t.Fatal(err)
	}
	d := host(t, dir).Driver()
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("List: %v, %v", list, err)
	}
	i, err := d.Open(t.Context(), list[0])
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, i, sandbox.CauseHost)
	if err := i.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
