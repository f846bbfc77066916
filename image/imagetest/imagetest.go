// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package imagetest provides the real images to tests. All tests of all packages share one
// directory, so a fresh machine builds each image once. It knows the image package and nothing
// else.
package imagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/image"
	"sandpit.dev/internal/skiptest"
)

// DirVariable names the environment variable that says where tests keep images.
const DirVariable = "SANDPIT_TEST_IMAGES"

// Dir is the directory that tests share: what DirVariable says, else one under
// /var/tmp for each user, which outlives a reboot. It refuses one that another
// user may write to, since tests run programs from it.
func Dir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(DirVariable); dir != "" {
		return dir
	}
	dir := "/var/tmp/sandpit-images"
	if uid := os.Getuid(); uid != 0 {
		dir = fmt.Sprintf("%s-%d", dir, uid)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		t.Fatalf("the tests' directory of images: %v", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatalf("the tests' directory of images: %v", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(st.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		t.Fatalf("%s is not a directory that only this user may write to; remove it, or set %s", dir, DirVariable)
	}
	return dir
}

// BaseDir is the directory that tests of the base image share, beside Dir: where base is built, names mean
// that, and the other tests are of what they mean without.
func BaseDir(t testing.TB) string { return Dir(t) + "-base" }

// Python returns the python image, and builds it first if the directory lacks it: a minute or
// two, with progress in the test's log. It skips the test only if the image is missing and the
// test has no right or no time (-short) to build it.
func Python(t testing.TB) image.Image {
	t.Helper()
	return built(t, Dir(t), "python")
}

// Own returns a directory of images with the python image alone, whose files it shares with Dir: for tests that make
// images, which other tests are not to see. It goes with the test.
func Own(t testing.TB) string {
	t.Helper()
	img := Python(t)
	dir, err := os.MkdirTemp(filepath.Dir(Dir(t)), "sandpit-images-own-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's images: %v", err)
		}
	})
	build := filepath.Dir(img.Root)
	to := filepath.Join(dir, "python", filepath.Base(build))
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := image.LinkTree(t.Context(), build, to); err != nil {
		t.Fatalf("share the python image's files: %v", err)
	}
	return dir
}

// Base returns the base image of BaseDir, as Python does that of Dir.
func Base(t testing.TB) image.Image {
	t.Helper()
	// Its packages are some of python's. What cannot be linked is fetched again.
	dir := BaseDir(t)
	to := filepath.Join(dir, "cache/apt")
	if err := os.Mkdir(dir, 0o700); err == nil && os.MkdirAll(to, 0o755) == nil {
		archives, _ := filepath.Glob(filepath.Join(Dir(t), "cache/apt/*.deb")) // only a malformed pattern is an error
		for _, a := range archives {
			_ = os.Link(a, filepath.Join(to, filepath.Base(a)))
		}
	}
	return built(t, dir, "base")
}

func built(t testing.TB, dir, name string) image.Image {
	t.Helper()
	s, err := image.Open(image.Options{Dir: dir})
	if err != nil {
		t.Fatalf("open the images in %s: %v", dir, err)
	}
	defer s.Close()
	img, err := s.Find(t.Context(), name)
	if err == nil {
		return img
	}
	skiptest.WithoutRoot(t, "there is no "+name+" image in "+dir+", and only root can build one")
	t.Logf("building the %s image in %s", name, dir)
	done := make(chan struct{})
	go func() {
		defer close(done)
		img, err = s.Ensure(t.Context(), name)
	}()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			if err != nil {
				t.Fatalf("build the %s image: %v", name, err)
			}
			return img
		case <-ticker.C:
			list, err := s.List(t.Context())
			if err != nil {
				t.Fatalf("watch the build: %v", err)
			}
			for _, st := range list {
				if st.Name != name {
					continue
				}
				t.Logf("%s: %s %3.0f%% %s: %s", st.Name, st.State, 100*st.Progress, st.Stage, st.Text)
			}
		}
	}
}
