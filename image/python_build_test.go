// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestBuildPython builds the real image, twice interrupted, in a directory of
// its own. It takes minutes and downloads 150 MB, so only SANDPIT_TEST_IMAGE_BUILD=1
// asks for it; without it the python image that all tests share is still a
// real build of the same recipe.
func TestBuildPython(t *testing.T) {
	if os.Getenv("SANDPIT_TEST_IMAGE_BUILD") == "" {
		t.Skip("set SANDPIT_TEST_IMAGE_BUILD=1 to build the real image again")
	}
	dir := t.TempDir()
	archives := filepath.Join(dir, "cache", "apt")

	interrupt := func(when func(Status) bool) {
		s := openDir(t, dir)
		result := make(chan error, 1)
		go func() {
			_, err := s.Ensure(t.Context(), "python")
			result <- err
		}()
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case err := <-result:
				t.Fatalf("the build ended before it was interrupted: %v", err)
			case <-ticker.C:
			}
			list, err := s.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if when(list[0]) {
				t.Logf("interrupted at %.2f in %s: %s", list[0].Progress, list[0].Stage, list[0].Text)
				break
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		<-result
	}

	interrupt(func(st Status) bool { return strings.Contains(st.Text, "Unpacking perl-base ") })
	before := inodes(t, archives)
	if len(before) < 30 {
		t.Fatalf("%d packages are in the cache, want the minimal system's", len(before))
	}
	interrupt(func(st Status) bool { return st.Stage == "node" })
	after := inodes(t, archives)
	for name, ino := range before {
		if after[name] != ino {
			t.Errorf("%s was fetched again", name)
		}
	}

	s := openDir(t, dir)
	began := time.Now()
	img, err := s.Ensure(t.Context(), "python")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("continued in %s: %s, %d MB, %d entries, %v", time.Since(began).Round(time.Second), img.Digest, img.SizeBytes>>20, img.Files, img.Versions)
	if diff := cmp.Diff(after, inodes(t, archives)); diff != "" {
		t.Errorf("the packages were fetched again (-before +after):\n%s", diff)
	}

	// A host without npm fetches the same Node with the new root's own pip.
	l, err := tryLock(dir)
	if err != nil || l == nil {
		t.Fatalf("lock: %v", err)
	}
	defer l.release()
	w := &work{dir: t.TempDir(), root: img.Root, lock: l, lines: new(tail), report: func(string, string, float64) {}, saved: time.Now()}
	cache := t.TempDir()
	wheels, err := nodeByPip(t.Context(), w, cache)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(w.lines.lines(), "\n"))
	}
	out := t.TempDir()
	root, err := os.OpenRoot(out)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := unpack(t.Context(), wheels[0].path, root, wheels[0].place); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"usr/local/bin/node", "usr/local/lib/node_modules/npm/bin/npm-cli.js"} {
		if info, err := root.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("the wheel %s has no %s (%v)", wheels[0].version, name, err)
		}
	}
}

// inodes returns each cached package's inode: a file that is fetched again has another.
func inodes(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]uint64)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".deb") {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, e.Name()), &st); err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = st.Ino
	}
	return all
}
