// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

func specOf(id sandbox.ID, root string) runtime.Spec {
	return runtime.Spec{
		ID: id, Image: runtime.Image{Root: root}, Hostname: string(id),
		Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 256, Pids: 64},
	}
}

// output runs a command in a sandbox, as its user.
func output(t testing.TB, i runtime.Instance, argv ...string) string {
	t.Helper()
	p, err := agent.NewClient(i.Dial).Start(context.Background(), agent.Command{ID: sandbox.NewProcessID(), Argv: argv, Timeout: time.Minute})
	if err != nil {
		t.Fatalf("start %q: %v", argv, err)
	}
	defer func() { _ = p.Close() }()
	var out bytes.Buffer
	for {
		f, err := p.Next(context.Background())
		if err != nil {
			break
		}
		out.Write(f.Data)
	}
	return strings.TrimSpace(out.String())
}

// trueDir is a directory by its one true name, as the kernel tells it.
func trueDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNothingIsLeftOfACreateWhoseTurnDoesNotCome(t *testing.T) {
	needRoot(t)
	root, dir := imagetest.Python(t).Root, trueDir(t)
	d := open(t, dir, "")
	leave := d.FillQueue()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.Create(ctx, specOf(sandbox.NewID(), root)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that its turn does not come", err)
	}
	leave()
	if handles, err := d.List(t.Context()); err != nil || len(handles) != 0 {
		t.Errorf("listed: %v, %v", handles, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

// BenchmarkCreate is a create, by each way to spawn; its remove is not counted.
func BenchmarkCreate(b *testing.B) {
	root := imagetest.Python(b).Root
	for name, method := range map[string]spawn.Method{"fastest": spawn.Fastest, "portable": spawn.Portable} {
		b.Run(name, func(b *testing.B) {
			d := openWith(b, native.Options{Dir: b.TempDir(), Spawn: method})
			for b.Loop() {
				b.StopTimer()
				<-time.After(100 * time.Millisecond) // a machine at rest, as a caller finds it
				b.StartTimer()
				i, err := d.Create(b.Context(), specOf(sandbox.NewID(), root))
				b.StopTimer()
				if err != nil {
					b.Fatal(err)
				}
				if err := i.Remove(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
