// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/changes"
)

// overlay is a real overlay on a detached mount.
type overlay struct {
	dir   string // holds lower, upper, work
	mount *os.File
	// ws is the workspace, as a path that works in this process.
	ws string
	// top is the root of the overlay.
	top string
	// made counts the files that storm made.
	made int
}

// newOverlay mounts an overlay over dir/lower (made where it is missing).
func newOverlay(t testing.TB, dir string, lower map[string]string, options ...string) *overlay {
	t.Helper()
	skiptest.WithoutRoot(t, "it mounts an overlay")
	o := &overlay{dir: dir}
	for _, sub := range []string{"lower/workspace", "lower/tmp", "upper", "work"} {
		must(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	for name, content := range lower {
		path := filepath.Join(dir, "lower", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	if options == nil {
		options = []string{"index=on", "nfs_export=on"}
	}
	o.mount = mountOverlay(t, append([]string{
		"lowerdir=" + dir + "/lower", "upperdir=" + dir + "/upper", "workdir=" + dir + "/work",
	}, options...))
	o.top = fmt.Sprintf("/proc/self/fd/%d", o.mount.Fd())
	o.ws = o.top + "/workspace"
	return o
}

func mountOverlay(t testing.TB, options []string) *os.File {
	t.Helper()
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	must(t, err)
	defer unix.Close(fs)
	for _, option := range options {
		var key, value string
		for i := range option {
			if option[i] == '=' {
				key, value = option[:i], option[i+1:]
				break
			}
		}
		must(t, unix.FsconfigSetString(fs, key, value))
	}
	must(t, unix.FsconfigCreate(fs))
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	must(t, err)
	mount := os.NewFile(uintptr(fd), "overlay")
	t.Cleanup(func() { mount.Close() })
	return mount
}

func newGroup(t testing.TB, o changes.Options) *changes.Group {
	t.Helper()
	skiptest.WithoutRoot(t, "it watches a file system by fanotify")
	if o.Logger == nil {
		// A test that fails prints why an answer was not complete.
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	g, err := changes.Open(o)
	must(t, err)
	t.Cleanup(func() { must(t, g.Close()) })
	return g
}

func add(t testing.TB, g *changes.Group, o *overlay) *changes.Source {
	t.Helper()
	s, err := g.Add(o.mount, []string{o.dir + "/lower"})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func track(t testing.TB, s *changes.Source) *changes.Tracker {
	t.Helper()
	tr, err := s.Track("/workspace")
	must(t, err)
	return tr
}

// stop returns the changes as "action path".
func stop(t testing.TB, tr *changes.Tracker) []string {
	t.Helper()
	c, err := tr.Stop(t.Context())
	must(t, err)
	if !c.Complete || c.Truncated {
		t.Errorf("the answer is Complete=%v Truncated=%v, want a whole one", c.Complete, c.Truncated)
	}
	return lines(c)
}

func lines(c changes.Changes) []string {
	out := []string{}
	for _, f := range c.Files {
		out = append(out, string(f.Action)+" "+f.Path)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}
