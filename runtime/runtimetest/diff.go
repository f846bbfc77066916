// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// diff returns what changed below some directories, as lines of action, path and size.
func (s *suite) diff(t *testing.T, from, to runtime.Point, below ...string) []string {
	t.Helper()
	c, err := s.snapshotter(t).Diff(t.Context(), s.Image, from, to, 100_000)
	if err != nil {
		t.Fatalf("Diff: %v", err)
	}
	if !c.Complete || c.Total != len(c.Files) {
		t.Errorf("the difference is not whole: %d of %d, complete %v", len(c.Files), c.Total, c.Complete)
	}
	if !slices.IsSortedFunc(c.Files, func(a, b sandbox.FileChange) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("the difference is not sorted")
	}
	lines := []string{}
	for _, f := range c.Files {
		if !slices.ContainsFunc(below, func(dir string) bool { return strings.HasPrefix(f.Path, dir+"/") }) {
			continue
		}
		line := f.Action + " " + f.Path
		if f.Size > 0 {
			line += fmt.Sprint(" ", f.Size)
		}
		lines = append(lines, line)
	}
	return lines
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func diffs(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	now := runtime.Point{Instance: b.Handle().ID}
	b.ok("echo same > same; echo 1 > changed; echo x > gone; mkdir -p dir/old; echo x > dir/old/file; echo x > kind; echo m > mode; ln -s a link")
	first := runtime.Point{Snapshot: s.keep(t, b)}
	wantLines(t, "since the image", s.diff(t, runtime.Point{}, first, "/workspace"),
		"created /workspace/changed 2", "created /workspace/dir", "created /workspace/dir/old", "created /workspace/dir/old/file 2",
		"created /workspace/gone 2", "created /workspace/kind 2", "created /workspace/link", "created /workspace/mode 2", "created /workspace/same 5")
	b.ok("echo 22 > changed; rm gone; rm -r dir/old; mkdir new; echo x > new/file; rm kind; mkdir kind; chmod 700 mode; ln -sfn b link; cat same > copy; mv copy same")
	second := runtime.Point{Snapshot: s.keep(t, b)}
	b.ok("echo 333 > changed; echo later > later")

	is := s.diff(t, first, second, "/workspace")
	// A file with the same content, made anew, may be told; a directory of which only the
	// list of names changed is not.
	is = slices.DeleteFunc(is, func(line string) bool { return line == "modified /workspace/same 5" })
	wantLines(t, "between two snapshots", is,
		"modified /workspace/changed 3", "deleted /workspace/dir/old", "deleted /workspace/dir/old/file", "deleted /workspace/gone",
		"modified /workspace/kind", "modified /workspace/link", "modified /workspace/mode 2", "created /workspace/new", "created /workspace/new/file 2")
	wantLines(t, "until now", s.diff(t, second, now, "/workspace"), "modified /workspace/changed 4", "created /workspace/later 6")
	wantLines(t, "back from now", s.diff(t, now, second, "/workspace"), "modified /workspace/changed 3", "deleted /workspace/later")
	wantLines(t, "to itself", s.diff(t, second, second, ""))
	wantLines(t, "from now until now", s.diff(t, now, now, "/workspace"))

	c, err := s.snapshotter(t).Diff(t.Context(), s.Image, runtime.Point{}, second, 3)
	if err != nil || len(c.Files) != 3 || c.Total <= 3 {
		t.Errorf("at most three: got %d of %d, %v", len(c.Files), c.Total, err)
	}
	for _, bad := range []runtime.Point{{Snapshot: sandbox.NewID()}, {Instance: sandbox.NewID()}} {
		_, err := s.snapshotter(t).Diff(t.Context(), s.Image, runtime.Point{}, bad, 10)
		wantCode(t, fmt.Sprintf("Diff to %+v", bad), err, fault.NotFound)
		_, err = s.snapshotter(t).Diff(t.Context(), s.Image, bad, now, 10)
		wantCode(t, fmt.Sprintf("Diff from %+v", bad), err, fault.NotFound)
	}
	if !s.rooted(t) {
		return
	}
	b = s.create(t, s.spec())
	if o := b.asRoot(`set -e; rm /etc/shells; echo more >> /etc/profile; echo x > /etc/made; rm -r /etc/skel; mkdir /etc/skel; echo x > /etc/skel/other
touch /etc/debian_version`); o.ExitCode != 0 {
		t.Fatalf("%+v", o)
	}
	size := strings.TrimSpace(b.ok("stat -c %s /etc/profile"))
	image := runtime.Point{}
	for what, p := range map[string]runtime.Point{"a snapshot": {Snapshot: s.keep(t, b)}, "an instance": {Instance: b.Handle().ID}} {
		is := s.diff(t, image, p, "/etc")
		for _, want := range []string{"deleted /etc/shells", "modified /etc/profile " + size, "created /etc/made 2", "created /etc/skel/other 2", "deleted /etc/skel/.bashrc"} {
			if !slices.Contains(is, want) {
				t.Errorf("the image and %s: %q is missing in\n\t%s", what, want, strings.Join(is, "\n\t"))
			}
		}
		for _, line := range is {
			if strings.Contains(line, ".wh.") || strings.Contains(line, "/etc/passwd") || line == "created /etc/skel" {
				t.Errorf("the image and %s: %q is told", what, line)
			}
		}
		back := s.diff(t, p, image, "/etc")
		for _, want := range []string{"created /etc/shells", "deleted /etc/made", "deleted /etc/skel/other"} {
			if !slices.ContainsFunc(back, func(line string) bool { return strings.HasPrefix(line, want) }) {
				t.Errorf("%s and the image: %q is missing in\n\t%s", what, want, strings.Join(back, "\n\t"))
			}
		}
	}
}
