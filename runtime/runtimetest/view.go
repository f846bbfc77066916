// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// view opens the files of a disk until the test ends.
func (s *suite) view(t *testing.T, at runtime.Point) runtime.View {
	t.Helper()
	v, err := s.driver.(runtime.Viewer).View(t.Context(), s.Image, at)
	if err != nil {
		t.Fatalf("View: %v", err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func viewRead(t *testing.T, v runtime.View, path string) (string, error) {
	t.Helper()
	_, r, err := v.Open(t.Context(), path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	return string(all), err
}

// views: the files of disks as they are seen without an instance.
func views(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	id := b.Handle().ID
	b.ok("echo one > file; mkdir -p dir/sub; echo x > dir/sub/deep; echo gone > gone; ln -s dir/sub/deep link; ln -s ../../../../../../../etc/hostname up; ln -s /proc/self/environ proc; mkfifo fifo; ln -s loop loop; for i in $(seq 25); do echo > dir/n$i; done")
	kept := s.keep(t, b)
	b.ok("echo two > file; rm gone; rm -r dir; echo kind > dir")
	then, now := s.view(t, runtime.Point{Snapshot: kept}), s.view(t, runtime.Point{Instance: id})
	for _, c := range []struct {
		v          runtime.View
		path, want string
		code       fault.Code
	}{
		{then, "/workspace/file", "one\n", ""}, {now, "/workspace/file", "two\n", ""},
		{then, "/workspace/gone", "gone\n", ""}, {now, "/workspace/gone", "", fault.NotFound},
		{then, "/workspace/link", "x\n", ""}, {now, "/workspace/link", "", fault.Invalid},
		{then, "/workspace/dir/../dir/sub/../sub/deep", "x\n", ""}, {then, "/../../workspace/file", "one\n", ""},
		{now, "/workspace/dir", "kind\n", ""}, {then, "/workspace/dir", "", fault.Invalid}, {now, "/workspace/dir/sub/deep", "", fault.Invalid},
		{then, "/workspace/fifo", "", fault.Invalid}, {then, "/workspace/loop", "", fault.Invalid}, {then, "/workspace/proc", "", fault.NotFound},
		{then, "/workspace/file/more", "", fault.Invalid}, {then, "/" + strings.Repeat("x", 300), "", fault.Invalid}, {then, "/" + strings.Repeat("x/", 3000), "", fault.Invalid},
	} {
		got, err := viewRead(t, c.v, c.path)
		if got != c.want || fault.Of(err) != c.code {
			t.Errorf("%.60s: got %q, %v; want %q, %q", c.path, got, err, c.want, c.code)
		}
	}
	// A link upwards ends at the top of the disk, and not on the host.
	own, _ := os.ReadFile("/etc/hostname")
	if got, err := viewRead(t, then, "/workspace/up"); err == nil && len(own) > 0 && got == string(own) {
		t.Errorf("a link upwards leads to the host's %q", got)
	}
	var seen []string
	pages := 0
	for after, more := "", true; more; pages++ {
		_, page, rest, err := then.List(t.Context(), "/workspace/dir", after, 10)
		if err != nil || len(page) > 10 || rest && len(page) == 0 {
			t.Fatalf("got %d entries, %v, %v", len(page), rest, err)
		}
		for _, f := range page {
			seen = append(seen, f.Name)
			after = f.Name
		}
		more = rest
	}
	if len(seen) != 26 || !slices.IsSorted(seen) || pages != 3 {
		t.Errorf("listed %q in %d pages", seen, pages)
	}
	if fi, err := then.Stat(t.Context(), "/workspace/link"); err != nil || fi.Type != sandbox.Symlink || fi.Target != "dir/sub/deep" || fi.TargetType != sandbox.RegularFile {
		t.Errorf("got %+v, %v", fi, err)
	}
	fi, r, err := then.Open(t.Context(), "/workspace/file")
	if err != nil || fi.Version == "" {
		t.Fatalf("got %+v, %v", fi, err)
	}
	r.Close()
	if fi, r, err := now.Open(t.Context(), "/workspace/file"); err != nil || fi.Version != "" {
		t.Errorf("what may change has the version %q, %v", fi.Version, err)
	} else {
		r.Close()
	}
	if _, err := s.driver.(runtime.Viewer).View(t.Context(), s.Image, runtime.Point{Snapshot: sandbox.NewID()}); fault.Of(err) != fault.NotFound {
		t.Errorf("of a snapshot that is not: %v", err)
	}
	if _, err := s.driver.(runtime.Viewer).View(t.Context(), s.Image, runtime.Point{Snapshot: "../../etc"}); err == nil {
		t.Error("a snapshot named ../../etc was opened")
	}
	base := s.view(t, runtime.Point{})
	if _, _, _, err := base.List(t.Context(), "/", "", 100); err != nil {
		t.Errorf("the image: %v", err)
	}
	if _, err := viewRead(t, base, "/workspace/file"); fault.Of(err) != fault.NotFound {
		t.Errorf("the image has a file of the sandbox's: %v", err)
	}
	viewRace(t, s, b, now)
}

// viewRace reads through a directory that a program exchanges all the while for a link out of the disk.
func viewRace(t *testing.T, s *suite, b *box, now runtime.View) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.ok("mkdir race; mkdir race/a; echo inside > race/a/secret; ln -s " + filepath.Dir(secret) + " race/b; " +
		"(end=$(($(date +%s)+20)); while [ $(date +%s) -lt $end ] && [ ! -e race/stop ]; do for i in 1 2 3 4 5 6 7 8; do mv race/a race/c; mv race/b race/a; mv race/a race/b; mv race/c race/a; done; done) >/dev/null 2>&1 &")
	read := 0
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		switch got, err := viewRead(t, now, "/workspace/race/a/secret"); {
		case err == nil && got != "inside\n":
			t.Fatalf("got %q", got)
		case err == nil:
			read++
		}
	}
	b.ok("touch race/stop")
	if read == 0 {
		t.Error("nothing was read")
	}
}
