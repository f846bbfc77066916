// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/internal/skiptest"
)

// layerOf packs headers, each with its name for content where it is a file.
func layerOf(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		h.ModTime = time.Unix(1700000000, 0)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func dirEntry(name string) tar.Header  { return tar.Header{Typeflag: tar.TypeDir, Name: name + "/"} }
func fileEntry(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
func linkEntry(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

// smallBase is a base of a few files, and a directory outside of it that nothing may touch.
func smallBase(t *testing.T) (base, outside string) {
	t.Helper()
	dir := t.TempDir()
	base, outside = filepath.Join(dir, "base"), filepath.Join(dir, "outside")
	for name, text := range map[string]string{
		"base/etc/hostname": "sandbox\n", "base/etc/conf": "base", "base/usr/bin/tool": "tool", "base/lib/a/b": "b", "base/tmp/.keep": "", "base/workspace/.keep": "", "outside/kept": "kept",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return base, outside
}

func apply(t *testing.T, base string, layer []byte) (string, error) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "root")
	if err := linkTree(t.Context(), base, to); err != nil {
		t.Fatal(err)
	}
	return to, applyFrom(t.Context(), base, to, left(), func(_ context.Context, w io.Writer) error {
		_, err := w.Write(layer)
		return err
	})
}

func TestALayerIsAppliedToAnImage(t *testing.T) {
	skiptest.WithoutRoot(t, "files of an image have owners")
	base, _ := smallBase(t)
	suid := fileEntry("usr/bin/suid")
	suid.Mode, suid.Uid, suid.Gid = 0o4755, 1000, 1000
	to, err := apply(t, base, layerOf(t,
		fileEntry("sandpit.json"), dirEntry("etc"), fileEntry("etc/conf"), fileEntry("etc/hostname"),
		dirEntry("lib"), dirEntry("lib/a"), fileEntry("lib/a/.wh..wh..opq"), fileEntry("lib/a/c"),
		dirEntry("tmp"), fileEntry("tmp/left"), dirEntry("usr"), dirEntry("usr/bin"), suid,
		tar.Header{Typeflag: tar.TypeLink, Name: "usr/bin/other", Linkname: "usr/bin/suid"}, fileEntry("usr/bin/.wh.tool"), linkEntry("usr/bin/link", "../../../../outside/kept"),
		dirEntry("workspace"), fileEntry("workspace/.wh..keep"), fileEntry("workspace/left"),
	))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"etc/conf": "etc/conf", "etc/hostname": "sandbox\n", "lib/a/c": "lib/a/c", "usr/bin/suid": "usr/bin/suid", "usr/bin/other": "usr/bin/suid", "workspace/.keep": "", "tmp/.keep": "",
	} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	for _, gone := range []string{"sandpit.json", "lib/a/b", "usr/bin/tool", "tmp/left", "workspace/left"} {
		if _, err := os.Lstat(filepath.Join(to, gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(to, "usr/bin/suid")); err != nil || info.Mode()&fs.ModeSetuid == 0 {
		t.Errorf("suid: %v, %v", info, err)
	}
	if got, err := os.ReadFile(filepath.Join(base, "etc/conf")); err != nil || string(got) != "base" {
		t.Errorf("the base was written: %q, %v", got, err)
	}
}

func TestAHostileLayerReachesNothingElse(t *testing.T) {
	skiptest.WithoutRoot(t, "files of an image have owners")
	far := fileEntry("far")
	far.Uid = 1 << 20
	for title, entries := range map[string][]tar.Header{
		"a path that leads out":           {fileEntry("../outside/kept")},
		"an absolute path":                {fileEntry("/outside/kept")},
		"a path with dots":                {dirEntry("a"), fileEntry("a/../../outside/kept")},
		"a file below a link":             {linkEntry("a", "../outside"), fileEntry("a/kept")},
		"a file below a directory's link": {dirEntry("a"), linkEntry("a", "../outside"), fileEntry("a/kept")},
		"a file below what was replaced":  {dirEntry("a"), dirEntry("a/b"), linkEntry("a", "../outside"), fileEntry("a/b/kept")},
		"a link's content":                {linkEntry("a", "../outside"), fileEntry("a/.wh..wh..opq")},
		"a whiteout of what is above":     {dirEntry("a"), fileEntry("a/.wh...")},
		"a whiteout of itself":            {dirEntry("a"), fileEntry("a/.wh..")},
		"a hard link to the host":         {tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "../outside/kept"}},
		"a hard link to the base":         {tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "etc/conf"}},
		"a hard link to itself":           {fileEntry("a"), {Typeflag: tar.TypeLink, Name: "a", Linkname: "a"}, fileEntry("none/x")},
		"an owner that there is not":      {far},
		"a file before its directory":     {fileEntry("new/x")},
	} {
		base, outside := smallBase(t)
		if _, err := apply(t, base, layerOf(t, entries...)); err == nil {
			t.Errorf("%s was taken", title)
		}
		if got, err := os.ReadFile(filepath.Join(outside, "kept")); err != nil || string(got) != "kept" {
			t.Errorf("%s: outside is %q, %v", title, got, err)
		}
		if got, err := os.ReadFile(filepath.Join(base, "etc/conf")); err != nil || string(got) != "base" {
			t.Errorf("%s: the base is %q, %v", title, got, err)
		}
	}
	base, outside := smallBase(t)
	if to, err := apply(t, base, layerOf(t, linkEntry("tmp", "../outside"), linkEntry("workspace", "/"), tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3})); err != nil {
		t.Error(err)
	} else {
		for _, dir := range []string{"tmp", "workspace"} {
			if info, err := os.Lstat(filepath.Join(to, dir)); err != nil || !info.IsDir() {
				t.Errorf("%s: %v, %v", dir, info, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(to, "null")); err == nil {
			t.Error("a device was made")
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Error(err)
	}
	whole := layerOf(t, dirEntry("a"), fileEntry("a/"+strings.Repeat("x", 50)))
	if _, err := apply(t, base, whole[:700]); err == nil {
		t.Error("half a layer was taken")
	}
}
