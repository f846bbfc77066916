// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// DebianPackage is one of the distribution's, unpacked with what it depends on and
// the host lacks.
type DebianPackage string

func (d DebianPackage) Name() string { return string(d) }

func (d DebianPackage) Offer() string {
	return "--fetch gets Debian's package " + string(d) + " without installing it"
}

// Get downloads with lists and a cache of our own: not even apt's are changed.
func (d DebianPackage) Get(ctx context.Context, p *Finder, root string) error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("there is no %s to get Debian's package %s with", tool, string(d))
		}
	}
	if p.lists == "" {
		lists := filepath.Join(p.Scratch, "lists")
		if err := os.MkdirAll(filepath.Join(lists, "partial"), 0o755); err != nil {
			return err
		}
		if err := apt(ctx, lists, p.Scratch, "update"); err != nil {
			return err
		}
		p.lists = lists
	}
	cache, err := os.MkdirTemp(p.Scratch, "apt-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(cache) }() // the run's directory goes anyway
	if err := os.MkdirAll(filepath.Join(cache, "archives", "partial"), 0o755); err != nil {
		return err
	}
	if err := apt(ctx, p.lists, cache, download(string(d))...); err != nil {
		return err
	}
	found, err := extract(ctx, cache, root)
	if err == nil && found == 0 {
		err = fmt.Errorf("the package %s is installed already, and lacks the program", string(d))
	}
	return err
}

// download is apt's command for packages and what they depend on.
func download(packages ...string) []string {
	return append([]string{"install", "--yes", "--no-install-recommends", "--download-only"}, packages...)
}

// extract unpacks what apt has downloaded, and says how many packages that are.
func extract(ctx context.Context, cache, root string) (int, error) {
	archives, err := filepath.Glob(filepath.Join(cache, "archives", "*.deb"))
	if err != nil {
		return 0, err
	}
	for _, archive := range archives {
		if err := Said(exec.CommandContext(ctx, "dpkg-deb", "--extract", archive, root)); err != nil {
			return 0, err
		}
	}
	return len(archives), nil
}

// apt runs apt-get with lists and a cache of our own.
func apt(ctx context.Context, lists, cache string, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{
		"-q", "-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache=" + cache, "-o", "APT::Sandbox::User=root",
	}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	return Said(cmd)
}

// GoProgram is built from a module at a version.
type GoProgram struct{ Package, Version string }

func (g GoProgram) Name() string { return filepath.Base(g.Package) + "@" + g.Version }

func (g GoProgram) Offer() string {
	return "--fetch builds its version " + g.Version + " with Go, which takes minutes"
}

func (g GoProgram) Get(ctx context.Context, p *Finder, root string) (err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("there is no go to build " + g.Name() + " with")
	}
	// Modules and what is compiled of them are gigabytes that nobody else needs.
	dir, err := os.MkdirTemp(p.Scratch, "go-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w", g.Package+"@"+g.Version)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOBIN="+filepath.Join(root, "usr", "bin"), "GOMODCACHE="+filepath.Join(dir, "modules"),
		"GOCACHE="+filepath.Join(dir, "compiled"), "GOFLAGS=-modcacherw", "GOWORK=off", "GOOS=", "GOARCH=", "CGO_ENABLED=0")
	return Said(cmd)
}

// Said runs a command whose words matter only when it fails; then the last do. An
// interrupt ends it with all that it started. It has to be one of CommandContext's.
func Said(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = bytes.TrimSpace(out)
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, out[max(0, len(out)-1024):])
	}
	return nil
}
