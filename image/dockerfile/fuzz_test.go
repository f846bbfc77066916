// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/image/dockerfile/ignore"
)

// FuzzContext holds that a hostile archive of a build's context has nothing above its top, and nothing beyond its bounds.
func FuzzContext(f *testing.F) {
	for _, headers := range [][]tar.Header{
		{{Name: "a/b", Typeflag: tar.TypeReg, Size: 1}, {Name: "a/l", Typeflag: tar.TypeSymlink, Linkname: "../.."}, {Name: "a/l/c", Typeflag: tar.TypeReg}},
		{{Name: "../x", Typeflag: tar.TypeReg}}, {{Name: "/etc/passwd", Typeflag: tar.TypeLink, Linkname: "/etc/shadow"}}, {{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		{{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "x"}, {Name: "x", Typeflag: tar.TypeDir}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			h.Mode = 0o4755
			if err := w.WriteHeader(&h); err != nil {
				f.Fatal(err)
			}
			if _, err := w.Write(make([]byte, h.Size)); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), "a/**")
	}
	f.Fuzz(func(t *testing.T, data []byte, source string) {
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		c, err := dockerfile.ReadContext(t.Context(), bytes.NewReader(data), file, dockerfile.Limits{Bytes: 64 << 10, Files: 100, Names: 8 << 10})
		if err != nil {
			if fault.Of(err) == fault.Internal {
				t.Errorf("it is the server's fault that %v", err)
			}
			return
		}
		defer c.Close()
		found, err := c.Find(source)
		if err != nil {
			return
		}
		for _, one := range found {
			for _, e := range append(one.Tree, one.Top) {
				if !filepath.IsLocal(e.Name) {
					t.Errorf("%q finds %q", source, e.Name)
				}
			}
		}
	})
}

// FuzzIgnore holds that a .dockerignore is refused or matches in time, whatever its patterns are.
func FuzzIgnore(f *testing.F) {
	f.Add([]byte("*\n!a\n**/b\n# c\n"), "a/b")
	f.Add([]byte("[\n\\\n***/***/***\n"), "x/y/z")
	f.Add([]byte("a{2,1000}(+)\n!\n"), "a")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		l, err := ignore.Parse(text)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if _, _, err := l.Match(name); err != nil && fault.Of(err) != fault.Invalid {
			t.Errorf("%q, %q: %v", text, name, err)
		}
	})
}
