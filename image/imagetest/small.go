// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package imagetest

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Small returns a root file system as an archive: programs with their libraries, of the first of some roots that has them, and files of
// one's own, by path.
func Small(t testing.TB, roots []string, files map[string][]byte, programs ...string) io.Reader {
	t.Helper()
	find := func(name string, dirs ...string) string {
		for _, root := range roots {
			for _, dir := range dirs {
				if found, _ := filepath.Glob(filepath.Join(root, dir, name)); len(found) > 0 {
					return found[0]
				}
			}
		}
		t.Fatalf("there is no %s in %v", name, roots)
		return ""
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, data []byte) {
		h.Size = int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[string]bool)
	for _, dir := range []string{"usr/", "usr/bin/", "usr/lib/", "usr/lib64/", "etc/", "root/"} {
		seen[dir] = true
		add(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
	}
	add(tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
	for link, to := range map[string]string{"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"} {
		add(tar.Header{Typeflag: tar.TypeSymlink, Name: link, Linkname: to}, nil)
	}
	add(tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	var copyOf func(from, to string)
	library := func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		copyOf(find(name, "usr/lib/*-linux-gnu/", "usr/lib/", "usr/lib64/", "lib/*-linux-gnu/"), "usr/lib/"+name)
	}
	copyOf = func(from, to string) {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		add(tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: 0o755}, data)
		f, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		names, err := f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type != elf.PT_INTERP {
				continue
			}
			b, err := io.ReadAll(p.Open())
			if err != nil {
				t.Fatal(err)
			}
			loader := strings.Trim(string(b), "\x00")
			if !seen[loader] {
				seen[loader] = true
				real, err := filepath.EvalSymlinks(find(loader, "usr"))
				if err != nil {
					t.Fatal(err)
				}
				copyOf(real, "usr"+loader)
			}
		}
		for _, name := range names {
			if !strings.HasPrefix(name, "ld-") {
				library(name)
			}
		}
	}
	for _, p := range programs {
		copyOf(find(p, "usr/bin", "usr/sbin"), "usr/bin/"+p)
	}
	for path, data := range files {
		for at, c := range path {
			if dir := path[:at] + "/"; c == '/' && !seen[dir] {
				seen[dir] = true
				add(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
			}
		}
		add(tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o755}, data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}
