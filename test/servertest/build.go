// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package servertest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// root is the module, from a package two levels below it.
const root = "../.."

// Build builds programs of the module into a directory: the server's, and those of further packages. It returns the path of the
// server's. It is for TestMain of a package two levels below the module.
func Build(dir string, packages ...string) (program string, err error) {
	for _, pkg := range append([]string{"./cmd/sandpit"}, packages...) {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v0.0.0-test", "-o", dir+"/", pkg)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return filepath.Join(dir, "sandpit"), nil
}

// Sources reads the directories of the module, which makes them inputs of the test: `go test` keeps no result then that is of
// a program of other sources. What a test runs by another process, and what TestMain does before the tests, it does not see.
func Sources(t testing.TB) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case d.Name() == ".git" || d.Name() == "node_modules" || path == filepath.Join(root, "bin") || path == filepath.Join(root, "agent/embedded/bin"):
			return fs.SkipDir // no sources, or made of those that are read
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
