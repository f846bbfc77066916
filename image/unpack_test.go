// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packed is one entry of an archive that a test makes.
type packed struct {
	name, content, link string
	kind                byte
	mode                int64
}

func tgz(t *testing.T, entries ...packed) string {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	tw := tar.NewWriter(gz)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.content)), Linkname: e.link}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a-1.0.0.tgz")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// below lists a tree's files with their content, links with their target.
func below(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			got[rel], err = os.Readlink(path)
			return err
		}
		data, err := os.ReadFile(path)
		got[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestUnpack(t *testing.T) {
	same := func(name string) string { return name }
	open := func(t *testing.T) (*os.Root, string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "root")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		return root, dir
	}

	t.Run("PlacesWhatIsWantedWithItsModeAndLeavesTheRest", func(t *testing.T) {
		root, dir := open(t)
		file := tgz(t,
			packed{name: "package/bin/node", content: "program", kind: tar.TypeReg, mode: 0o6755},
			packed{name: "package/bin/old", content: "twice", kind: tar.TypeReg, mode: 0o644},
			packed{name: "package/bin/old", content: "again", kind: tar.TypeReg, mode: 0o644},
			packed{name: "package/evil", link: "/etc", kind: tar.TypeSymlink},
			packed{name: "../../escape", content: "x", kind: tar.TypeReg},
		)
		err := unpack(t.Context(), file, root, func(name string) string {
			if rest, ok := strings.CutPrefix(name, "package/bin/"); ok {
				return "usr/" + rest
			}
			return ""
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"usr/node": "program", "usr/old": "again"}, below(t, dir)); diff != "" {
			t.Errorf("tree (-want +got):\n%s", diff)
		}
		info, err := os.Stat(filepath.Join(dir, "usr/node"))
		if err != nil || info.Mode() != 0o755 {
			t.Errorf("the program's mode is %v (%v), want no more than 0755", info.Mode(), err)
		}
	})

	for title, entry := range map[string]packed{
		"ASymbolicLinkIsRefused":    {name: "a", link: "/etc/passwd", kind: tar.TypeSymlink},
		"AHardLinkIsRefused":        {name: "a", link: "/etc/passwd", kind: tar.TypeLink},
		"ADeviceIsRefused":          {name: "a", kind: tar.TypeChar},
		"AFifoIsRefused":            {name: "a", kind: tar.TypeFifo},
		"AnAbsoluteNameIsRefused":   {name: "/a", content: "x", kind: tar.TypeReg},
		"AParentIsRefused":          {name: "../a", content: "x", kind: tar.TypeReg},
		"AParentInsideIsRefused":    {name: "b/../../a", content: "x", kind: tar.TypeReg},
		"AnUncleanNameIsRefused":    {name: "b//a", content: "x", kind: tar.TypeReg},
		"TheRootItselfIsRefused":    {name: ".", content: "x", kind: tar.TypeReg},
		"ALinkInTheRootIsNotLeft":   {name: "out/a", content: "x", kind: tar.TypeReg},
		"ALinkUpInTheRootIsNotLeft": {name: "up/a", content: "x", kind: tar.TypeReg},
	} {
		t.Run(title, func(t *testing.T) {
			root, dir := open(t)
			outside := t.TempDir()
			for name, target := range map[string]string{"out": outside, "up": ".."} {
				if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := unpack(t.Context(), tgz(t, entry), root, same); err == nil {
				t.Error("it was unpacked")
			}
			if diff := cmp.Diff(map[string]string{"out": outside, "up": ".."}, below(t, dir)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
			if got := below(t, filepath.Dir(dir)); len(got) != 2 || len(below(t, outside)) != 0 {
				t.Errorf("something lies outside the root: %v", got)
			}
		})
	}

	t.Run("AFileReplacesALinkAndDoesNotWriteThroughIt", func(t *testing.T) {
		root, dir := open(t)
		victim := filepath.Join(t.TempDir(), "victim")
		if err := os.WriteFile(victim, []byte("whole"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(victim, filepath.Join(dir, "node")); err != nil {
			t.Fatal(err)
		}
		if err := unpack(t.Context(), tgz(t, packed{name: "node", content: "x", kind: tar.TypeReg}), root, same); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(victim); err != nil || string(data) != "whole" {
			t.Errorf("the link's target holds %q (%v)", data, err)
		}
	})

	t.Run("AnEndlessFileIsCutOff", func(t *testing.T) {
		root, _ := open(t)
		u := &unpacker{root: root, place: same, bytes: 10}
		if err := u.entry("a", 0o644, strings.NewReader(strings.Repeat("x", 11))); err == nil {
			t.Error("11 bytes were unpacked, 10 allowed")
		}
	})

	t.Run("AWheelIsUnpacked", func(t *testing.T) {
		root, dir := open(t)
		path := filepath.Join(t.TempDir(), "n-1.0.0.whl")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		zw := zip.NewWriter(f)
		for _, name := range []string{"bin/", "bin/node"} {
			w, err := zw.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "/") {
				if _, err := w.Write([]byte("program")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := zw.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := unpack(t.Context(), path, root, same); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"bin/node": "program"}, below(t, dir)); diff != "" {
			t.Errorf("tree (-want +got):\n%s", diff)
		}
	})

	t.Run("ABrokenArchiveIsAnError", func(t *testing.T) {
		for _, suffix := range []string{".tgz", ".whl"} {
			root, _ := open(t)
			path := filepath.Join(t.TempDir(), "a-1.0.0"+suffix)
			if err := os.WriteFile(path, []byte("nothing of the kind"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := unpack(t.Context(), path, root, same); err == nil {
				t.Errorf("%s was unpacked", suffix)
			}
		}
	})
}
