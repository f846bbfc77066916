// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// What the suite of package runtimetest cannot see: the host's directory, and what
// only the fake has.

func TestAHostThatEndedWhileAVolumeWasMounted(t *testing.T) {
	dir := t.TempDir()
	d := host(t, dir).Driver()
	volume := sandbox.NewID()
	if err := d.CreateVolume(t.Context(), volume, 0); err != nil {
		t.Fatal(err)
	}
	spec := runtime.Spec{ID: sandbox.NewID()}
	i, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	output(t, i, "mkdir data; echo under > data/file")
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []sandbox.Mount{{Volume: volume, Path: "/workspace/data"}}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	output(t, i, "echo in the volume > data/shared")
	copied := filepath.Join(t.TempDir(), "host") // as it is on the disk when the process is killed
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", dir, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	again := host(t, copied).Driver()
	j, err := again.Open(t.Context(), i.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(copied, string(spec.ID), "disk/workspace/data/file")); err != nil || string(got) != "under\n" {
		t.Errorf("under the mount is %q, %v", got, err)
	}
	if err := again.RemoveVolume(t.Context(), volume); err != nil {
		t.Errorf("RemoveVolume when nobody mounts it any more: %v", err)
	}
	if err := j.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHalvesOfSnapshotsAndVolumesAreGoneAfterAnOpen(t *testing.T) {
	dir := t.TempDir()
	for _, half := range []string{".snapshots/tmp-1/disk", ".volumes/tmp-2/x"} {
		if err := os.MkdirAll(filepath.Join(dir, half), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d := host(t, dir).Driver()
	left, err := filepath.Glob(filepath.Join(dir, ".*", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	for what, list := range map[string]func(context.Context) ([]sandbox.ID, error){"snapshots": d.Snapshots, "volumes": d.Volumes} {
		if ids, err := list(t.Context()); err != nil || len(ids) != 0 {
			t.Errorf("%s: %v, %v", what, ids, err)
		}
	}
}

func TestLimitsAreThoseThatWereToldLast(t *testing.T) {
	h := host(t, t.TempDir())
	spec := runtime.Spec{ID: sandbox.NewID(), Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, Pids: 64, DiskMB: 64}}
	i, err := h.Driver().Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	more := spec.Limits
	more.MemoryMB = 512
	for _, step := range []struct {
		do   func() error
		want sandbox.Limits
	}{
		{func() error { return nil }, spec.Limits},
		{func() error { return i.(runtime.Resizer).Resize(t.Context(), more) }, more},
		{func() error { return i.Stop(t.Context(), 0) }, more},
		{func() error { return h.Driver().Rollback(t.Context(), spec.ID, "", spec.Limits) }, spec.Limits},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Limits(spec.ID); err != nil || got != step.want {
			t.Errorf("got %+v, %v, want %+v", got, err, step.want)
		}
	}
	wantCode(t, i.(runtime.Resizer).Resize(t.Context(), more), fault.State)
	_, err = h.Limits(sandbox.NewID())
	wantCode(t, err, fault.NotFound)
}

func TestKillOfAPausedInstance(t *testing.T) {
	h := host(t, t.TempDir())
	i := create(t, h.Driver())
	p, err := agent.NewClient(i.Dial).Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "echo; sleep 600"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.(runtime.Pauser).Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(i.Handle().ID, runtime.Exit{Cause: sandbox.CauseOOM}); err != nil {
		t.Fatal(err)
	}
	wantExit(t, i, sandbox.CauseOOM)
	wantCode(t, i.(runtime.Pauser).Resume(t.Context()), fault.State)
}

func TestAPauseThatIsCanceledLeavesNothingFrozen(t *testing.T) {
	i := create(t, host(t, t.TempDir()).Driver())
	p, err := agent.NewClient(i.Dial).Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "while :; do echo; sleep 0.01; done"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	canceled := 0
	for n := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*100*time.Microsecond)
		err := i.(runtime.Pauser).Pause(ctx)
		cancel()
		if err == nil {
			err = i.(runtime.Pauser).Resume(t.Context())
		} else if errors.Is(err, context.DeadlineExceeded) {
			canceled, err = canceled+1, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if i.(runtime.Pauser).Paused() {
			t.Fatal("it is paused")
		}
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if canceled == 0 {
		t.Error("none was canceled")
	}
	if got := output(t, i, "echo works"); got != "works\n" {
		t.Errorf("got %q", got)
	}
}
