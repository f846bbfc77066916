// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// packages are Debian's that are unpacked, with what they depend on and the host lacks: the browser without a window,
// and letters for pictures of pages.
var packages = []string{"chromium-headless-shell", "fonts-dejavu-core"}

const (
	executable = "usr/lib/chromium/chromium-headless-shell" // below the root of what was unpacked
	stamp      = "version"                                  // beside it: what the program said of itself, written last
)

// Absent says why there is no browser on this machine, by no fault of ours.
type Absent struct{ reason string }

func (e Absent) Error() string { return e.reason }

// Program is a browser that can be started.
type Program struct {
	Version string // as it says it
	// Flags are of its command line, beside those that Open gives it.
	Flags map[string]any
	root  string
}

// Dir is where browsers are kept between runs: one under /var/tmp for each user.
func Dir() string {
	const dir = "/var/tmp/sandpit-browser"
	if uid := os.Getuid(); uid != 0 {
		return fmt.Sprintf("%s-%d", dir, uid)
	}
	return dir
}

// Get returns the browser that dir has, and gets it first if there is none that runs: 100 MB, in half a minute. It
// installs nothing, and not even apt's lists are changed. An [Absent] error is the reason why there can be none.
func Get(ctx context.Context, dir string) (Program, error) {
	unlock, err := lock(dir)
	if err != nil {
		return Program{}, err
	}
	defer unlock()
	if kept, ok, err := kept(ctx, dir); ok || err != nil {
		return kept, err
	}
	p := Program{root: filepath.Join(dir, "chromium")}
	err = p.unpack(ctx, dir)
	return p, err
}

// Kept returns the browser that dir has. An [Absent] error says that there is none that runs.
func Kept(ctx context.Context, dir string) (Program, error) {
	if _, err := os.Lstat(dir); os.IsNotExist(err) {
		return Program{}, Absent{"no browser is kept in " + dir}
	}
	unlock, err := lock(dir)
	if err != nil {
		return Program{}, err
	}
	defer unlock()
	p, ok, err := kept(ctx, dir)
	if err == nil && !ok {
		err = Absent{"no browser that runs is kept in " + dir}
	}
	return p, err
}

// kept returns the browser that dir has, if there is one that runs.
func kept(ctx context.Context, dir string) (p Program, ok bool, err error) {
	p.root = filepath.Join(dir, "chromium")
	said, err := os.ReadFile(filepath.Join(p.root, stamp))
	if err != nil {
		return Program{}, false, nil
	}
	// The host may have lost a library that it had when this was unpacked.
	if p.Version, err = p.version(ctx); err != nil || p.Version != string(said) {
		return Program{}, false, nil
	}
	return p, true, p.writeFonts(p.root)
}

// GetVim returns the path of Debian's smallest vim below dir, and gets it first as [Get] does: 2 MB. It needs no file beside it.
func GetVim(ctx context.Context, dir string) (string, error) {
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	const program = "usr/bin/vim.tiny"
	root := filepath.Join(dir, "vim")
	if _, err := os.Stat(filepath.Join(root, program)); err == nil {
		return filepath.Join(root, program), nil
	}
	return filepath.Join(root, program), fetch(ctx, dir, root, []string{"download", "vim-tiny"}, func(next string) error {
		_, err := os.Stat(filepath.Join(next, program))
		return err
	})
}

// lock makes dir, which nobody else may write to, and waits for who else gets something there.
func lock(dir string) (unlock func(), err error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	// Its programs are run: nobody else may have put them there.
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s is not a directory that only this user may write to; remove it", dir)
	}
	f, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // which unlocks it
}

// unpack puts what is complete into the place of p.
func (p *Program) unpack(ctx context.Context, dir string) error {
	return fetch(ctx, dir, p.root, append([]string{"install", "--yes", "--no-install-recommends", "--download-only"}, packages...), func(root string) (err error) {
		if err := p.writeFonts(root); err != nil {
			return err
		}
		if p.Version, err = (Program{root: root}).version(ctx); err != nil {
			return fmt.Errorf("what was unpacked does not run: %w", err)
		}
		return os.WriteFile(filepath.Join(root, stamp), []byte(p.Version), 0o644)
	})
}

// fetch has apt-get fetch packages by args, and puts what is in them into the place of root once complete has nothing against it.
func fetch(ctx context.Context, dir, root string, args []string, complete func(root string) error) (err error) {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return Absent{"this is unpacked of Debian's packages, and this host has no " + tool}
		}
	}
	scratch, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	next, archives := filepath.Join(scratch, "root"), filepath.Join(scratch, "archives")
	for _, sub := range []string{"lists/partial", "archives/partial", "root"} {
		if err := os.MkdirAll(filepath.Join(scratch, sub), 0o755); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"update"}, args} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{
			"-q", "-o", "Dir::State::lists=" + filepath.Join(scratch, "lists"), "-o", "Dir::Cache=" + scratch, "-o", "APT::Sandbox::User=root",
		}, args...)...)
		cmd.Dir, cmd.Env = archives, append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
		if err := said(cmd); err != nil {
			if why := unreachable.FindString(err.Error()); why != "" {
				return Absent{"Debian's package " + args[len(args)-1] + " cannot be fetched: " + why}
			}
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	for _, archive := range files {
		if err := said(exec.CommandContext(ctx, "dpkg-deb", "--extract", archive, next)); err != nil {
			return err
		}
	}
	if err := complete(next); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(root), os.Rename(next, root))
}

// unreachable is what apt says when there is no archive that serves us, or none with the package.
var unreachable = regexp.MustCompile(`Could not resolve[^\n]*|Could not connect[^\n]*|Failed to fetch[^\n]*|Unable to locate package[^\n]*|has no installation candidate`)

// fonts is fontconfig's configuration of a root. What the host has already was not unpacked.
func fonts(root string) string {
	return "<?xml version=\"1.0\"?>\n<fontconfig><dir>" + filepath.Join(root, "usr/share/fonts") + "</dir><dir>/usr/share/fonts</dir><cachedir>" + filepath.Join(root, "fonts.cache") + "</cachedir>" +
		family("sans-serif", "DejaVu Sans") + family("Arial", "DejaVu Sans") +
		family("ui-monospace", "DejaVu Sans Mono") + family("monospace", "DejaVu Sans Mono") +
		// What no other is named for, as of system-ui, which this browser without a window has no setting for.
		"<match><edit name=\"family\" mode=\"append\" binding=\"strong\"><string>DejaVu Sans</string></edit></match></fontconfig>\n"
}

// family has one be another: by assignment, since of a mere preference the browser takes what it likes.
func family(name, is string) string {
	return "<match><test name=\"family\"><string>" + name + "</string></test><edit name=\"family\" mode=\"assign\" binding=\"strong\"><string>" + is + "</string></edit></match>"
}

// writeFonts writes fontconfig's configuration into what is, or will be, the program's root: an earlier build of the tests may
// have written another.
func (p Program) writeFonts(root string) error {
	return os.WriteFile(filepath.Join(root, "fonts.conf"), []byte(fonts(p.root)), 0o644)
}

// path is the program's.
func (p Program) path() string { return filepath.Join(p.root, executable) }

// environ is what the program needs beside our environment, to find what is of its root.
func (p Program) environ() []string {
	var libraries []string
	for _, pattern := range []string{"usr/lib/*-linux-*", "lib/*-linux-*", "usr/lib/*-linux-*/*"} {
		found, err := filepath.Glob(filepath.Join(p.root, pattern))
		if err != nil {
			continue // the patterns are valid
		}
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				libraries = append(libraries, path)
			}
		}
	}
	return []string{
		"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"), "FONTCONFIG_FILE=" + filepath.Join(p.root, "fonts.conf"),
		"DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent", "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent", // it speaks to nobody of the host's
	}
}

// version returns what the program says of itself.
func (p Program) version(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, p.path(), "--version")
	cmd.Env = append(os.Environ(), p.environ()...)
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, e.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// said runs a command whose words matter only when it fails.
func said(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = bytes.TrimSpace(out)
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, out[max(0, len(out)-2048):])
	}
	return nil
}
