// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// programs finds those of the peers: what is installed, else what an earlier run
// fetched, else what it fetches now, where that is asked for. Nothing is ever
// installed on the host.
type programs struct {
	cache   string // directory that outlives the run; "": there is none
	scratch string // directory of this run
	fetch   bool
	lists   string // directory of apt's lists, once they are there
}

// kit is a directory tree with programs that are not installed; without a root,
// they are.
type kit struct{ root string }

// source gets programs into a new directory tree.
type source interface {
	// name is of a file, and a new version of what the source is pinned to has another.
	name() string
	// offer ends the sentence that the program is not installed.
	offer() string
	get(ctx context.Context, p *programs, root string) error
}

const (
	kitRoot    = "root"    // of what is in the cache: the tree
	kitVersion = "version" // what the program said of itself when it was fetched
)

// find returns the kit with the program, which has to understand --version.
func (p *programs) find(ctx context.Context, program string, from source) (kit, error) {
	if _, err := exec.LookPath(program); err == nil {
		return kit{}, nil
	}
	why := "not installed"
	dir := filepath.Join(p.cache, from.name())
	if _, err := os.Lstat(dir); err == nil && p.cache != "" {
		k, err := p.kept(ctx, program, dir)
		if err == nil {
			return k, nil
		}
		why += ", and what an earlier run fetched is not used: " + err.Error()
	}
	if ctx.Err() != nil {
		return kit{}, ctx.Err()
	}
	if !p.fetch {
		return kit{}, errors.New(why + "; " + from.offer())
	}
	return p.bring(ctx, program, from)
}

// kept returns what an earlier run left in dir, if it is ours, works, and is what
// was left.
func (p *programs) kept(ctx context.Context, program, dir string) (kit, error) {
	k := kit{filepath.Join(dir, kitRoot)}
	// Programs run as root: nobody else may have put them here.
	for _, path := range []string{dir, k.root, k.path(program)} {
		info, err := os.Lstat(path)
		if err != nil {
			return kit{}, err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(st.Uid) != os.Geteuid() || info.Mode()&(fs.ModeSymlink|0o022) != 0 {
			return kit{}, fmt.Errorf("%s is a link, or others may write to it", path)
		}
	}
	want, err := os.ReadFile(filepath.Join(dir, kitVersion))
	if err != nil {
		return kit{}, err
	}
	got, err := k.version(ctx, program)
	if err == nil && got != string(want) {
		err = fmt.Errorf("%s is %q, and was %q", k.path(program), got, want)
	}
	return k, err
}

// bring fetches, into the cache if there is one.
func (p *programs) bring(ctx context.Context, program string, from source) (_ kit, err error) {
	into := p.cache
	if into == "" {
		into = p.scratch
	}
	for _, dir := range []string{into, p.scratch} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return kit{}, err
		}
	}
	// What is half done has another name: only what is complete gets the true one.
	dir, err := os.MkdirTemp(into, "."+from.name()+"-")
	if err != nil {
		return kit{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	k := kit{filepath.Join(dir, kitRoot)}
	if err := os.Mkdir(k.root, 0o755); err != nil {
		return kit{}, err
	}
	if err := from.get(ctx, p, k.root); err != nil {
		return kit{}, fmt.Errorf("not installed, and not fetched: %w", err)
	}
	version, err := k.version(ctx, program)
	if err != nil {
		return kit{}, fmt.Errorf("what was fetched does not run: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, kitVersion), []byte(version), 0o644); err != nil {
		return kit{}, err
	}
	final := filepath.Join(into, from.name())
	if err := errors.Join(os.RemoveAll(final), os.Rename(dir, final)); err != nil {
		return kit{}, err
	}
	return kit{filepath.Join(final, kitRoot)}, nil
}

// places are where a tree has programs.
func (k kit) places() []string {
	var out []string
	for _, d := range []string{"usr/sbin", "usr/bin", "sbin", "bin"} {
		out = append(out, filepath.Join(k.root, d))
	}
	return out
}

// path of the program; where a kit has none of the name, it is looked for among
// those that are installed.
func (k kit) path(program string) string {
	if k.root == "" {
		return program
	}
	for _, d := range k.places() {
		if _, err := os.Lstat(filepath.Join(d, program)); err == nil {
			return filepath.Join(d, program)
		}
	}
	return program
}

// environ is ours, changed so that programs of the kit find each other and their
// libraries.
func (k kit) environ() []string {
	if k.root == "" {
		return os.Environ()
	}
	env := append(os.Environ(), "PATH="+strings.Join(append(k.places(), os.Getenv("PATH")), ":"))
	// lib/x86_64-linux-gnu and the like; what a tree lacks is not in the list.
	var libs []string
	for _, pattern := range []string{"usr/lib/*-linux-*", "lib/*-linux-*"} {
		found, err := filepath.Glob(filepath.Join(k.root, pattern))
		if err == nil { // the patterns are valid
			libs = append(libs, found...)
		}
	}
	if len(libs) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(libs, ":"))
	}
	return env
}

// command is one of the kit's programs, in a process group of its own: an
// interrupt is for us, who end things in order.
func (k kit) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.path(program), args...)
	cmd.Env = k.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// version returns the first line of what the program says of itself.
func (k kit) version(ctx context.Context, program string) (string, error) {
	limit, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	cmd := k.command(limit, program, "--version")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	line = strings.TrimSpace(line)
	// What was built of a module may not know its version, but Go does.
	if info, err := buildinfo.ReadFile(cmd.Path); err == nil && strings.HasPrefix(info.Main.Version, "v") {
		line += ", " + info.Main.Path + " " + info.Main.Version
	}
	return line, nil
}

// spent runs a command that is measured, and gives what it took. It is not ended with
// ctx: a sandbox that is half made is harder to clean up than one that ends by itself.
func spent(ctx context.Context, dir string, command func(ctx context.Context) *exec.Cmd) (took, cpu time.Duration, err error) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	cmd := command(limit)
	// Words go to a file: what a runtime leaves running keeps them open, and a pipe
	// would be read for as long.
	said, err := os.CreateTemp(dir, "said-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, said.Close(), os.Remove(said.Name())) }()
	cmd.Stdout, cmd.Stderr = said, said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		words := make([]byte, 2048)
		n, _ := said.ReadAt(words, 0) // it is a remark on another error
		return 0, 0, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(words[:n]))
	}
	took = time.Since(began)
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
