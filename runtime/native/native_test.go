// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/agent/agenttest"
	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/kept"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/changes"
	"sandpit.dev/linux/layer"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/runtime/runtimetest"
	"sandpit.dev/sandbox"
)

// agentProgram builds the agent as the server carries it: static, and without
// the race detector, which no process 1 could bear. Where there is no Go, SANDPIT_TEST_AGENT
// names one that was built before.
var agentProgram = sync.OnceValues(func() ([]byte, error) {
	if built := os.Getenv("SANDPIT_TEST_AGENT"); built != "" {
		return os.ReadFile(built)
	}
	dir, err := os.MkdirTemp("", "sandpit-agent-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "sandpit.dev/cmd/sandpit-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func needRoot(t testing.TB) {
	t.Helper()
	skiptest.WithoutRoot(t, "the native runtime makes namespaces with mapped id ranges")
}

func open(t testing.TB, dir string, kind layer.Kind) *native.Driver {
	t.Helper()
	return openWith(t, native.Options{Dir: dir, Layers: kind})
}

func openWith(t testing.TB, o native.Options) *native.Driver {
	t.Helper()
	var err error
	if o.Agent, err = agentProgram(); err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	d, err := native.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("native.Open: %v", err)
	}
	return d
}

func TestConformance(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		dir := t.TempDir()
		return runtimetest.Harness{
			Image: runtime.Image{Root: root},
			Open:  func(t *testing.T) runtime.Driver { return open(t, dir, "") },
			Must: []runtime.Feature{
				runtime.Isolation, runtime.LimitCPU, runtime.LimitMemory, runtime.LimitPids,
				runtime.KillTree, runtime.TrackChanges, runtime.WatchFiles, runtime.RootUser, runtime.Sudo, runtime.RootDisk, runtime.Reopen,
				runtime.Pause, runtime.Resize, runtime.Snapshots, runtime.CheapSnapshots, runtime.Volumes, runtime.VolumeParts,
			},
		}
	})
}

// Where there is no btrfs, writable layers are plain directories.
func TestConformanceOnPlainLayers(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	must := []runtime.Feature{runtime.Isolation, runtime.LimitMemory, runtime.Reopen, runtime.Pause, runtime.Snapshots, runtime.Volumes}
	if changes.CheckIDs(t.TempDir()) == nil { // Linux 6.6
		must = append(must, runtime.TrackChanges, runtime.WatchFiles)
	}
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		dir := t.TempDir()
		return runtimetest.Harness{
			Image: runtime.Image{Root: root},
			Open:  func(t *testing.T) runtime.Driver { return open(t, dir, layer.Plain) },
			Must:  must,
			Lacks: []runtime.Feature{runtime.LimitDisk, runtime.CheapSnapshots},
		}
	}, "Sudo") // which knows no layers
}

// Before Linux 6.15 mounts are made by way of a yard, which works on any kernel.
func TestConformanceByAYard(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		dir := t.TempDir()
		return runtimetest.Harness{
			Image: runtime.Image{Root: root},
			Open:  func(t *testing.T) runtime.Driver { return openWith(t, native.Options{Dir: dir, Yard: true}) },
			Must: []runtime.Feature{
				runtime.Isolation, runtime.LimitMemory, runtime.LimitPids, runtime.KillTree, runtime.TrackChanges, runtime.WatchFiles,
				runtime.RootUser, runtime.Sudo, runtime.Reopen, runtime.Pause, runtime.Resize, runtime.Snapshots, runtime.CheapSnapshots, runtime.Volumes, runtime.VolumeParts,
			},
		}
	}, "Changes", "Watches", "Sudo") // no mount has a part in them, or another test is of it
}

// On a processor for which no assembler is written, children of the server have a copy of its
// memory.
func TestConformanceByThePortableSpawn(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		dir := t.TempDir()
		return runtimetest.Harness{
			Image: runtime.Image{Root: root},
			Open:  func(t *testing.T) runtime.Driver { return openWith(t, native.Options{Dir: dir, Spawn: spawn.Portable}) },
			Must:  []runtime.Feature{runtime.Isolation, runtime.LimitMemory, runtime.KillTree, runtime.RootUser, runtime.Sudo, runtime.Reopen},
		}
	}, "Limits", "Pause", "Resize", "Snapshots", "Volumes", "Network", "Changes", "Watches", "Users", "Accounts", "Sudo", "Isolation", "Neighbours") // these are about what comes later
}

// The agent's own suite, through a real sandbox.
func TestAgent(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	agenttest.Run(t, func(t *testing.T) *agent.Client {
		i, err := d.Create(t.Context(), runtime.Spec{
			ID: sandbox.NewID(), Image: runtime.Image{Root: root}, Hostname: "box",
			Limits: sandbox.Limits{CPU: 2, MemoryMB: 1024, DiskMB: 1024, Pids: 1024},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := i.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return agent.NewClient(i.Dial)
	}, agenttest.Options{HasRoot: true, IsPID1: true, HasGroups: true, OwnRoot: true, Unprivileged: true, Reaps: !kept.Works()})
}

// Between setuid and execve a command is the user's, whose other processes may stop
// it, while the agent stands still until it has executed its program.
func TestACommandThatIsStoppedOnItsWayDoesNotStopTheAgent(t *testing.T) {
	needRoot(t)
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	i, err := d.Create(t.Context(), runtime.Spec{
		ID: sandbox.NewID(), Image: runtime.Image{Root: imagetest.Python(t).Root}, Hostname: "box",
		Limits: sandbox.Limits{CPU: 2, MemoryMB: 1024, DiskMB: 1024, Pids: 512},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Remove(context.Background()) })
	c := agent.NewClient(i.Dial)
	command := func(shell string) agent.Command {
		return agent.Command{ID: sandbox.NewProcessID(), Shell: shell, MaxStdout: 1 << 20, MaxStderr: 1 << 20}
	}
	p, err := c.Start(t.Context(), command(`exec python3 -c '
import os
print("up", flush=True)
while True:
    try: os.kill(-1, 19)
    except OSError: pass
'`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*fork.Patience*time.Second)
		q, err := c.Start(ctx, command("true"))
		cancel()
		if err != nil {
			t.Fatalf("start %d: %v after %v", n, err, time.Since(began))
		}
		_ = q.Close()
		if time.Since(began) > time.Second { // it was stopped, and got over it
			break
		}
	}
	if _, err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
