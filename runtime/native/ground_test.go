// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// The kernel refuses a work directory whose index is another upper directory's.
func TestAWorkDirectoryThatIsAnothersIsMadeAnew(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	program, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := trueDir(t)
	plant := func() {}
	d, err := native.Open(context.Background(), native.Options{Dir: dir, Agent: program, Layers: layer.Plain, Checkpoint: func(name string) {
		if name == "create.layer" {
			plant()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	workOf := func(id sandbox.ID) string {
		found, err := filepath.Glob(filepath.Join(dir, "layers", "*", string(id), "work"))
		if err != nil || len(found) != 1 {
			t.Fatalf("the work directory of %s: %v, %v", id, found, err)
		}
		return found[0]
	}
	const upper = "trusted.overlay.upper"
	first, second := sandbox.NewID(), sandbox.NewID()
	i, err := d.Create(t.Context(), specOf(first, root))
	if err != nil {
		t.Fatal(err)
	}
	handle := make([]byte, 256)
	n, err := unix.Getxattr(filepath.Join(workOf(first), "index"), upper, handle)
	if err != nil {
		t.Fatal(err)
	}
	plant = func() {
		index := filepath.Join(workOf(second), "index")
		if err := os.Mkdir(index, 0o700); err != nil {
			t.Error(err)
		}
		if err := unix.Setxattr(index, upper, handle[:n], 0); err != nil {
			t.Error(err)
		}
	}
	other, err := d.Create(t.Context(), specOf(second, root))
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, other, "echo", "hello"); got != "hello" {
		t.Errorf("inside: %q", got)
	}
	for _, x := range []interface{ Remove(context.Context) error }{i, other} {
		if err := x.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
