// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package script tests sandpit end to end: scripts drive the real binary
// against a real server, with nothing of the program linked in. A script is a
// txtar file; commands_test.go says what it can do beside the usual.
package script

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/test/servertest"
)

// version is what the tested binary says of itself.
const version = "v0.0.0-script"

// bin is where TestMain put the binary; empty where nothing can be run.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if os.Geteuid() != 0 || testing.Short() {
		return m.Run() // each test skips itself, with the reason
	}
	dir, err := os.MkdirTemp("", "sandpit-script-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "build sandpit:", err)
		return 1
	}
	bin = dir
	return m.Run()
}

// build makes the binary as `make build` does, with the agent in it.
func build(dir string) error {
	const root, embedded = "../..", "../../agent/embedded/bin/sandpit-agent"
	agent := filepath.Join(dir, "sandpit-agent")
	if err := goBuild(root, agent, "./cmd/sandpit-agent", "-s -w"); err != nil {
		return err
	}
	// Other packages' tests embed the same file: it is replaced in one step, and
	// only by something else.
	fresh, err := os.ReadFile(agent)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(embedded); err != nil || !bytes.Equal(have, fresh) {
		next := embedded + ".script"
		if err := os.WriteFile(next, fresh, 0o755); err != nil {
			return err
		}
		if err := os.Rename(next, embedded); err != nil {
			return err
		}
	}
	return goBuild(root, filepath.Join(dir, "sandpit"), "./cmd/sandpit", "-s -w -X main.version="+version)
}

func goBuild(root, out, pkg, ldflags string) error {
	abs, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", ldflags, "-o", abs, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", pkg, err, out)
	}
	return nil
}

// needRoot skips a test that cannot run, and gives the directory of images.
func needRoot(t *testing.T) string {
	t.Helper()
	skiptest.WithoutRoot(t, "the native runtime does")
	servertest.Sources(t)
	imagetest.Python(t)
	return imagetest.Dir(t)
}

// environment is that of a script's commands: a server of its own in dir, on a
// port that is free, with the images that all tests share.
func environment(dir, images string) []string {
	return []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + dir,
		"SANDPIT_RUN_DIR=" + filepath.Join(dir, "run"),
		"SANDPIT_DATA=" + filepath.Join(dir, "data"),
		"SANDPIT_IMAGES=" + images,
		"SANDPIT_LISTEN=127.0.0.1:0",
	}
}

func TestScripts(t *testing.T) {
	images := needRoot(t)
	testscript.Run(t, testscript.Params{
		Dir:                ".",
		RequireUniqueNames: true,
		UpdateScripts:      os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds:               commands(),
		Setup: func(e *testscript.Env) error {
			for _, v := range environment(e.WorkDir, images) {
				name, value, _ := strings.Cut(v, "=")
				e.Setenv(name, value)
			}
			s := &server{dir: e.WorkDir, env: e.Vars}
			e.Values[serverKey{}] = s
			e.Defer(func() {
				if err := s.cleanUp(); err != nil {
					e.T().Log(err)
					if tb, ok := e.T().(testing.TB); ok {
						tb.Errorf("the script's server cannot be put away: %v", err)
					}
				}
			})
			return nil
		},
	})
}

// code returns the exit status of a command that ran; else the error.
func code(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.Exited() {
		return e.ExitCode(), nil
	}
	return -1, err
}
