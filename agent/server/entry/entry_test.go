// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"archive/tar"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent/wire"
)

func TestCheck(t *testing.T) {
	long := strings.Repeat("a/", wire.MaxPath)
	for _, c := range []struct {
		h     tar.Header
		clean string
		why   string
	}{
		{h: tar.Header{Typeflag: tar.TypeReg, Name: "a/./b//c"}, clean: "a/b/c"},
		{h: tar.Header{Typeflag: tar.TypeDir, Name: "a/"}, clean: "a"},
		{h: tar.Header{Typeflag: tar.TypeDir, Name: "./"}, clean: "."},
		{h: tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc"}, clean: "a"},
		{h: tar.Header{Typeflag: tar.TypeCont, Name: "a..b"}, clean: "a..b"},
		{h: tar.Header{Typeflag: tar.TypeReg}, why: "no name"},
		{h: tar.Header{Typeflag: tar.TypeReg, Name: "a\x00b"}, why: "no name"},
		{h: tar.Header{Typeflag: tar.TypeReg, Name: "/a"}, why: "absolute"},
		{h: tar.Header{Typeflag: tar.TypeReg, Name: "a/../b"}, why: ".."},
		{h: tar.Header{Typeflag: tar.TypeReg, Name: long}, why: "too long"},
		{h: tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: long}, why: "too long"},
		{h: tar.Header{Typeflag: tar.TypeBlock, Name: "a"}, why: "device"},
		{h: tar.Header{Typeflag: tar.TypeChar, Name: "a"}, why: "device"},
		{h: tar.Header{Typeflag: tar.TypeFifo, Name: "a"}, why: "pipe"},
		{h: tar.Header{Typeflag: 'Z', Name: "a"}, why: "not known"},
	} {
		clean, why := Check(&c.h)
		if clean != c.clean || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%q of type %q: got %q, %q, want %q, %q", start(c.h.Name), c.h.Typeflag, clean, why, c.clean, c.why)
		}
	}
}

func start(name string) string { return name[:min(len(name), 40)] }

// What waits to be made, and each directory that an archive is in, has its header: it must not be as
// large as the archive makes it.
func TestAHeaderKeepsNothingOfItsRecords(t *testing.T) {
	at := time.Unix(1700000000, 123456789)
	h := tar.Header{
		Typeflag: tar.TypeDir, Name: "a", Linkname: "l", Mode: 0o751, Uid: 7, Gid: 8, Size: 9, ModTime: at,
		PAXRecords: map[string]string{"SCHILY.xattr.user.x": strings.Repeat("x", 1<<20)}, Uname: strings.Repeat("u", 1<<16),
	}
	if _, why := Check(&h); why != "" {
		t.Fatal(why)
	}
	if h.PAXRecords != nil || h.Uname != "" {
		t.Error("its records are there still")
	}
	if h.Typeflag != tar.TypeDir || h.Name != "a" || h.Linkname != "l" || h.Mode != 0o751 || h.Uid != 7 || h.Gid != 8 || h.Size != 0 || !h.ModTime.Equal(at) {
		t.Errorf("got %+v", h)
	}
}
