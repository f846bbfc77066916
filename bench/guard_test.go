// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
)

// What operations cost is held to bounds: counts and ratios, and never times.
func TestOperationsStayWithinTheirBounds(t *testing.T) {
	program, images := guarded(t)
	t.Run("counts", func(t *testing.T) { holdCounts(t, program, images) })
	t.Run("ratios", func(t *testing.T) { holdRatios(t, program, images) })
}

const (
	guardWarmUp = 10 // lives before anything is counted
	guardLives  = 40
	guardExecs  = 3 // in each life
)

// holdCounts counts on one server, which is warm.
func holdCounts(t *testing.T, program, images string) {
	ctx := t.Context()
	s, err := startServer(ctx, program, t.TempDir(), images, 0, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	o := &ours{client: s.client, pid: s.cmd.Process.Pid}
	for range guardWarmUp {
		if _, err := o.firstCommand(ctx, byArgv); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("allocations", func(t *testing.T) { holdAllocations(t, s, o) })
	t.Run("calls", func(t *testing.T) { holdCalls(t, o) })
	t.Run("coats", func(t *testing.T) { holdCoats(t, s, o) })
	t.Run("sockets", func(t *testing.T) { holdSockets(t, s) })
}

// guarded builds the server as users have it, with the agent of this tree in it, and changes nothing in the
// tree. It returns the program, beside which is the one that measures, and where the images are.
func guarded(t *testing.T) (program, images string) {
	t.Helper()
	skiptest.WithoutRoot(t, "the native runtime makes namespaces with mapped id ranges")
	imagetest.Python(t)
	lookAtTree(t)
	dir := t.TempDir()
	tool := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			if exit, ok := err.(*exec.ExitError); ok {
				t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, exit.Stderr)
			}
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	agent := filepath.Join(dir, "agent")
	tool("build", "-trimpath", "-ldflags=-s -w", "-o", agent, "sandpit.dev/cmd/sandpit-agent")
	place := filepath.Join(tool("list", "-f", "{{.Dir}}", "sandpit.dev/agent/embedded"), "bin", "sandpit-agent")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {place: agent}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "sandpit")
	tool("build", "-overlay", overlay, "-trimpath", "-ldflags=-s -w -X main.version=v1.0.0-guard", "-o", program, "sandpit.dev/cmd/sandpit")
	tool("build", "-trimpath", "-o", filepath.Join(dir, "sandpit-bench"), "sandpit.dev/bench/cmd/sandpit-bench")
	return program, imagetest.Dir(t)
}

// tree is the checkout, by a link in this module: `go test` forgets what a test looks at outside of its module.
const tree = "testdata/tree/"

// lookAtTree reads what each source file of the tree is: `go test` remembers that, and takes no result from
// its cache that another tree had.
func lookAtTree(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			_, err = os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) { // it went meanwhile
				err = nil
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
