// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mount_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/mount"
)

// a namespace makes overlays of detached mounts, and clones of one that it keeps, on any kernel.
func TestNamespace(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	namespace, err := mount.NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	store, err := mount.New("tmpfs", 0, mount.Param{Key: "size", Value: "1m"})
	if err != nil {
		t.Fatal(err)
	}
	if err := namespace.Keep(int(store.Fd())); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"image", "layer", "layer/upper", "layer/work"} {
		if err := unix.Mkdirat(int(store.Fd()), name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, store, "image/old", "of the image")

	clone := func(name string) *os.File {
		t.Helper()
		m, err := namespace.CloneAt(int(store.Fd()), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	lower, layer := clone("image"), clone("layer")
	plain := func(fn func()) error { fn(); return nil }

	// A try that fails costs nothing: what it was made of can be tried again, as often as need be.
	for range 3 {
		if _, err := namespace.Overlay(lower, layer, 0, plain, mount.Param{Key: "index", Value: "perhaps"}); err == nil {
			t.Fatal("a parameter that the kernel does not know was taken")
		}
	}
	refused := errors.New("no such ids")
	if _, err := namespace.Overlay(lower, layer, 0, func(func()) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("what could not be begun gave %v", err)
	}
	root, err := namespace.Overlay(lower, layer, unix.MOUNT_ATTR_NODEV, plain, mount.Param{Key: "index", Value: "on"})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, root, "old"); got != "of the image" {
		t.Errorf("the overlay has %q of the image", got)
	}
	write(t, root, "new", "of the layer")
	if got := read(t, store, "layer/upper/new"); got != "of the layer" {
		t.Errorf("the store's layer has %q", got)
	}
	for _, name := range []string{"lower", "layer", "kept"} {
		if mounts := hostMounts(t); strings.Contains(mounts, " /"+name+" ") {
			t.Errorf("the host has a mount at /%s:\n%s", name, mounts)
		}
	}

	// After the namespace is gone the overlay works on, and the rest is let go of.
	if err := namespace.Close(); err != nil {
		t.Error(err)
	}
	if got := read(t, root, "new"); got != "of the layer" {
		t.Errorf("after the namespace's end the overlay has %q", got)
	}
	for _, f := range []*os.File{root, store} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// a namespace has room for one mount, and says so.
func TestNamespaceKeepsOne(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	namespace, err := mount.NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	for n := range 2 {
		m, err := mount.New("tmpfs", 0, mount.Param{Key: "size", Value: "4k"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close() }()
		if err := namespace.Keep(int(m.Fd())); (err == nil) != (n == 0) {
			t.Errorf("mount %d: %v", n, err)
		}
	}
}

func write(t *testing.T, dir *os.File, name, text string) {
	t.Helper()
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir *os.File, name string) string {
	t.Helper()
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	f := os.NewFile(uintptr(fd), filepath.Base(name))
	defer func() { _ = f.Close() }()
	var b strings.Builder
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hostMounts is what the process itself sees.
func hostMounts(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
