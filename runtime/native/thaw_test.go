// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// noDescriptors leaves the process without a descriptor to open, until the function that
// it gives is called, or the test ends.
func noDescriptors(t *testing.T) (enough func()) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	enough = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(enough)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	return enough
}

func TestAResumeAfterOneThatFailedThaws(t *testing.T) {
	needRoot(t)
	i := box(t, watched(t, "", nil))
	pause(t, i)
	enough := noDescriptors(t)
	first, second := i.Resume(t.Context()), i.Resume(t.Context())
	enough()
	if first == nil || !fault.Is(second, fault.Unavailable) {
		t.Fatalf("Resume without descriptors = %v, then %v; want errors, the second unavailable", first, second)
	}
	if answers(i, 200*time.Millisecond) {
		t.Fatal("it was resumed") // and nothing is tested
	}
	resume(t, i)
	if !answers(i, 20*time.Second) {
		t.Error("it stands still, and Resume said that it goes on")
	}
}

func TestASnapshotThatCannotThawIsThawedLater(t *testing.T) {
	needRoot(t)
	var enough func()
	d := watched(t, "", func(point string) {
		if point == "snapshot.taken" {
			enough = noDescriptors(t)
		}
	})
	i := box(t, d)
	_, err := d.Snapshot(t.Context(), i.Handle().ID, sandbox.NewID())
	enough()
	if err == nil {
		t.Fatal("a snapshot whose thaw failed is no error")
	}
	if !answers(i, 20*time.Second) {
		t.Error("it stands still for good")
	}
}

func TestAPauseThatCannotBeWrittenNorUndoneIsUndoneLater(t *testing.T) {
	needRoot(t)
	program, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var enough func()
	var mark string // the path of what is in its way
	d, err := native.Open(t.Context(), native.Options{Dir: dir, Agent: program, Checkpoint: func(point string) {
		if point == "pause.frozen" {
			if err := os.MkdirAll(mark+"/full", 0o700); err != nil {
				t.Error(err)
			}
			enough = noDescriptors(t)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	mark = filepath.Join(dir, "instances", string(i.Handle().ID)+".paused")
	err = i.Pause(t.Context())
	enough()
	if err == nil {
		t.Fatal("a pause that cannot be written is no error")
	}
	if err := os.RemoveAll(mark); err != nil {
		t.Fatal(err)
	}
	if !answers(i, 20*time.Second) {
		t.Error("it stands still for good")
	}
}

// A snapshot or a fork freezes what may not have got to its root yet. A server that is
// killed then leaves it so.
func TestWhatWasFrozenAtItsStartGoesOnWithTheNextServer(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	dir := trueDir(t)
	program, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	serve := func() *native.Driver {
		d, err := native.Open(t.Context(), native.Options{Dir: dir, Agent: program})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	d := serve()
	var handles []runtime.Handle
	for range 5 {
		i, err := d.Create(t.Context(), specOf(sandbox.NewID(), root))
		if err != nil {
			t.Fatal(err)
		}
		i.(*native.Instance).Freeze(t)
		handles = append(handles, i.Handle())
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = serve()
	for _, h := range handles {
		i, err := d.Open(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		if !answers(i, 20*time.Second) {
			t.Errorf("the sandbox %s does not go on", h.ID)
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
