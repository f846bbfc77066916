// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
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

	"golang.org/x/sys/unix"
)

// Finder finds those of the peers: what is installed, else what an earlier run
// fetched, else what it fetches now, where that is asked for. Nothing is ever
// installed on the host.
type Finder struct {
	Cache   string // directory that outlives the run; "": there is none
	Scratch string // directory of this run
	Fetch   bool
	lists   string // directory of apt's lists, once they are there
}

// Kit is a directory tree with programs that are not installed; without a root,
// they are.
type Kit struct {
	root  string
	whole bool // it is a system of its own, of a [DebianSuite]
}

// Source gets programs into a new directory tree.
type Source interface {
	// Name is of a file, and a new version of what the source is pinned to has another.
	Name() string
	// Offer ends the sentence that the program is not installed.
	Offer() string
	Get(ctx context.Context, p *Finder, root string) error
}

// versionTimeout is how long a program gets to say what it is.
const versionTimeout = 30 * time.Second

const (
	kitRoot    = "root"    // of what is in the cache: the tree
	kitVersion = "version" // what the program said of itself when it was fetched
)

// Find returns the kit with the program, which has to understand --version, or -V.
func (p *Finder) Find(ctx context.Context, program string, from Source) (Kit, error) {
	if _, err := exec.LookPath(program); err == nil && !whole(from) {
		return Kit{}, nil
	}
	why := "not installed"
	dir := filepath.Join(p.Cache, from.Name())
	if _, err := os.Lstat(dir); err == nil && p.Cache != "" {
		k, err := p.kept(ctx, program, dir, whole(from))
		if err == nil {
			return k, nil
		}
		why += ", and what an earlier run fetched is not used: " + err.Error()
	}
	if ctx.Err() != nil {
		return Kit{}, ctx.Err()
	}
	if !p.Fetch {
		return Kit{}, errors.New(why + "; " + from.Offer())
	}
	if p.Cache == "" {
		return p.bring(ctx, program, from)
	}
	held, err := lock(ctx, p.Cache)
	if err != nil {
		return Kit{}, err
	}
	defer func() { _ = held.Close() }()
	if k, err := p.kept(ctx, program, dir, whole(from)); err == nil {
		return k, nil // another process fetched it while we waited
	}
	return p.bring(ctx, program, from)
}

// lock takes the right to fetch into a directory, which other processes wait for. It is free when
// the file is closed.
func lock(ctx context.Context, dir string) (_ *os.File, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// UserCache returns where programs are kept between runs; "" where the user has no such folder.
func UserCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sandpit", "bench")
}

// kept returns what an earlier run left in dir, if it is ours, works, and is what
// was left.
func (p *Finder) kept(ctx context.Context, program, dir string, whole bool) (Kit, error) {
	k := Kit{filepath.Join(dir, kitRoot), whole}
	// Programs run as root: nobody else may have put them here.
	for _, path := range []string{dir, k.root, k.file(program)} {
		info, err := os.Lstat(path)
		if err != nil {
			return Kit{}, err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(st.Uid) != os.Geteuid() || info.Mode()&(fs.ModeSymlink|0o022) != 0 {
			return Kit{}, fmt.Errorf("%s is a link, or others may write to it", path)
		}
	}
	want, err := os.ReadFile(filepath.Join(dir, kitVersion))
	if err != nil {
		return Kit{}, err
	}
	got, err := k.Version(ctx, program)
	if err == nil && got != string(want) {
		err = fmt.Errorf("%s is %q, and was %q", k.file(program), got, want)
	}
	return k, err
}

// bring fetches, into the cache if there is one.
func (p *Finder) bring(ctx context.Context, program string, from Source) (_ Kit, err error) {
	into := p.Cache
	if into == "" {
		into = p.Scratch
	}
	for _, dir := range []string{into, p.Scratch} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return Kit{}, err
		}
	}
	// What is half done has another name: only what is complete gets the true one.
	dir, err := os.MkdirTemp(into, "."+from.Name()+"-")
	if err != nil {
		return Kit{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	k := Kit{filepath.Join(dir, kitRoot), whole(from)}
	if err := os.Mkdir(k.root, 0o755); err != nil {
		return Kit{}, err
	}
	if err := from.Get(ctx, p, k.root); err != nil {
		return Kit{}, fmt.Errorf("not installed, and not fetched: %w", err)
	}
	version, err := k.Version(ctx, program)
	if err != nil {
		return Kit{}, fmt.Errorf("what was fetched does not run: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, kitVersion), []byte(version), 0o644); err != nil {
		return Kit{}, err
	}
	final := filepath.Join(into, from.Name())
	if err := errors.Join(os.RemoveAll(final), os.Rename(dir, final)); err != nil {
		return Kit{}, err
	}
	return Kit{filepath.Join(final, kitRoot), k.whole}, nil
}

// programDirs are where a tree has programs.
var programDirs = []string{"usr/sbin", "usr/bin", "sbin", "bin"}

func (k Kit) places() []string {
	var out []string
	for _, d := range programDirs {
		out = append(out, filepath.Join(k.root, d))
	}
	return out
}

// Path returns that of the program; where a kit has none of the name, it is looked for among
// those that are installed. One of a [DebianSuite] is there once the kit covers /usr.
func (k Kit) Path(program string) string {
	path := k.file(program)
	if rest, found := strings.CutPrefix(path, k.root+"/"); found && k.whole {
		return "/" + rest
	}
	return path
}

// file returns the path of the program in the tree, or its name.
func (k Kit) file(program string) string {
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
func (k Kit) environ() []string {
	if k.root == "" || k.whole {
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

// Command is one of the kit's programs, in a process group of its own: an
// interrupt is for us, who end things in order. One of a [DebianSuite] has the host's libraries.
func (k Kit) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.file(program), args...)
	cmd.Env = k.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// Version returns the first line of what the program says of itself.
func (k Kit) Version(ctx context.Context, program string) (string, error) {
	limit, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := k.Command(limit, program, "--version")
	path := cmd.Path
	k.inside(cmd)
	out, err := cmd.Output()
	if _, ended := errors.AsType[*exec.ExitError](err); ended { // those of xfsprogs know the short one alone
		if short, e := k.Command(limit, program, "-V").Output(); e == nil {
			out, err = short, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	line = strings.TrimSpace(line)
	// What was built of a module may not know its version, but Go does.
	if info, err := buildinfo.ReadFile(path); err == nil && strings.HasPrefix(info.Main.Version, "v") {
		line += ", " + info.Main.Path + " " + info.Main.Version
	}
	return line, nil
}
