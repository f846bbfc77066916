// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package merged_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/merged"
	"sandpit.dev/sandbox"
)

// fixture is a layer and an image, made of lines: "d PATH", "f PATH CONTENT", "l PATH TARGET", "w PATH" (a whiteout),
// "o PATH" (an opaque directory).
func fixture(t *testing.T, layer, image []string) *merged.Tree {
	t.Helper()
	var dirs [2]*os.File
	for i, lines := range [2][]string{layer, image} {
		if lines == nil {
			continue
		}
		dir := t.TempDir()
		for _, line := range lines {
			f := strings.SplitN(line, " ", 3)
			at := filepath.Join(dir, f[1])
			var err error
			switch f[0] {
			case "d":
				err = os.Mkdir(at, 0o755)
			case "o":
				if err = os.Mkdir(at, 0o755); err == nil {
					err = unix.Setxattr(at, "trusted.overlay.opaque", []byte("y"), 0)
				}
			case "f":
				err = os.WriteFile(at, []byte(f[2]), 0o600)
			case "l":
				err = os.Symlink(f[2], at)
			case "w":
				err = unix.Mknod(at, unix.S_IFCHR, 0)
			}
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		var err error
		if dirs[i], err = os.Open(dir); err != nil {
			t.Fatal(err)
		}
	}
	tree := merged.New(dirs[0], dirs[1], true)
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

func read(t *testing.T, tree *merged.Tree, path string) string {
	t.Helper()
	_, r, err := tree.Open(t.Context(), path)
	if err != nil {
		return string(fault.Of(err))
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func list(t *testing.T, tree *merged.Tree, path string) string {
	t.Helper()
	_, all, more, err := tree.List(t.Context(), path, "", 1000)
	if err != nil || more {
		return string(fault.Of(err))
	}
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return strings.Join(names, " ")
}

func TestALayerIsSeenUponItsImage(t *testing.T) {
	skiptest.WithoutRoot(t, "whiteouts are devices")
	tree := fixture(t,
		[]string{"d a", "f a/new layer", "w a/gone", "f a/both layer", "o opaque", "f opaque/own layer", "w dir", "f was-dir layer", "d was-file", "f was-file/x layer", "d was-link", "f was-link/y layer", "l to-dir a", "w nothing"},
		[]string{"d a", "f a/old image", "f a/gone image", "f a/both image", "d opaque", "f opaque/hidden image", "d dir", "f dir/x image", "d was-dir", "f was-dir/x image", "f was-file image", "l was-link a", "d only", "f only/x image", "l up ../../..", "l into a/old"},
	)
	for path, want := range map[string]string{
		"/a/new": "layer", "/a/both": "layer", "/a/old": "image", "/a/gone": "not_found", "/opaque/own": "layer", "/opaque/hidden": "not_found",
		"/dir/x": "not_found", "/was-dir": "layer", "/was-dir/x": "invalid", "/was-file/x": "layer", "/was-link/y": "layer", "/was-link/old": "not_found",
		"/to-dir/old": "image", "/only/x": "image", "/up/a/old": "image", "/into": "image", "/to-dir/../only/x": "image", "/nothing": "not_found", "": "invalid", "/": "invalid", "/..": "invalid",
	} {
		if got := read(t, tree, path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{
		"/": "a into only opaque to-dir up was-dir was-file was-link", "/a": "both new old", "/to-dir": "both new old", "/opaque": "own", "/only": "x",
		"/was-file": "x", "/was-link": "y", "/was-dir": "invalid", "/dir": "not_found", "/up": "a into only opaque to-dir up was-dir was-file was-link", "/to-dir/.": "both new old",
	} {
		if got := list(t, tree, path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := read(t, fixture(t, nil, []string{"f x image"}), "/x"); got != "image" {
		t.Errorf("an image alone: got %q", got)
	}
	if got := read(t, fixture(t, []string{"f x layer"}, nil), "/x"); got != "layer" {
		t.Errorf("a layer alone: got %q", got)
	}
}

// No path and no link of a layer leads out of it, and nothing in it is opened that does something when it is.
func TestNothingLeadsOut(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes devices")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, target := range map[string]string{
		"absolute": outside + "/secret", "directory": outside, "upwards": strings.Repeat("../", 60) + outside + "/secret", "self": "/proc/self/fd/3", "root": "/proc/1/root" + outside + "/secret",
		"a": "b", "b": "a", "itself": "itself", "long": strings.Repeat("./", 2000) + "x", "grows": "grows/grows",
	} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]uint32{"fifo": unix.S_IFIFO, "null": unix.S_IFCHR, "disk": unix.S_IFBLK} {
		if err := unix.Mknod(at(name), mode|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	top, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tree := merged.New(top, nil, false)
	defer tree.Close()
	for _, path := range []string{
		"/absolute", "/directory/secret", "/upwards", "/self", "/root", "/a", "/b", "/itself", "/long", "/grows", "/fifo", "/null", "/disk", "/socket",
		strings.Repeat("/..", 100) + outside + "/secret", "/./" + outside + "/secret", "/" + strings.Repeat("x/../", 800) + "absolute", "/a\x00b", "/" + strings.Repeat("y", 256), strings.Repeat("/z", 2100),
	} {
		got := read(t, tree, path)
		if got != string(fault.NotFound) && got != string(fault.Invalid) && got != string(fault.Unavailable) {
			t.Errorf("%.60q: got %q", path, got)
		}
		if _, _, _, err := tree.List(t.Context(), path, "", 10); err == nil {
			t.Errorf("%.60q was listed", path)
		}
	}
	for name, kind := range map[string]sandbox.FileType{"fifo": sandbox.OtherFile, "null": sandbox.OtherFile, "absolute": sandbox.Symlink} {
		if fi, err := tree.Stat(t.Context(), "/"+name); err != nil || fi.Type != kind || fi.TargetType != "" {
			t.Errorf("%s: got %+v, %v", name, fi, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := tree.Open(gone, "/fifo"); err == nil {
		t.Error("a call whose caller is gone did something")
	}
}

// A list of many names comes in pages that hold each once.
func TestPagesHoldEachNameOnce(t *testing.T) {
	var layer, image, want []string
	for i := range 1500 {
		name := fmt.Sprintf("n%d", i*7919%1500)
		switch want = append(want, name); i % 3 {
		case 0:
			layer = append(layer, "f "+name+" x")
		case 1:
			image = append(image, "f "+name+" x")
		default:
			layer, image = append(layer, "f "+name+" x"), append(image, "f "+name+" x")
		}
	}
	slices.Sort(want)
	tree := fixture(t, layer, image)
	for _, limit := range []int{1, 7, 256, 1499, 1500, 5000} {
		var got []string
		for after, more := "", true; more; {
			_, page, rest, err := tree.List(t.Context(), "/", after, limit)
			if err != nil || len(page) > limit || rest && len(page) == 0 {
				t.Fatalf("limit %d: %d entries, %v, %v", limit, len(page), rest, err)
			}
			for _, f := range page {
				got = append(got, f.Name)
				after = f.Name
			}
			if more = rest; limit == 1 && len(got) == 20 {
				got, more = append(got, want[20:]...), false
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %d names", limit, len(got))
		}
	}
}
