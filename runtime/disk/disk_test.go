// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/disk"
)

// file is an entry of an archive.
type file struct {
	tar.Header
	content string
}

func regular(name, content string) file {
	return file{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, content}
}

func directory(name string) file {
	return file{tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}, ""}
}

func hard(name, to string) file {
	return file{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}, ""}
}

func symbolic(name, to string) file {
	return file{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}, ""}
}

func pack(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := f.Header
		h.Size, h.Format = int64(len(f.content)), tar.FormatPAX
		if h.ModTime.IsZero() {
			h.ModTime = time.Unix(1000, 0)
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t *testing.T, archive []byte) *disk.Tree {
	t.Helper()
	tree, err := disk.Read(t.Context(), bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// lines are the entries of an archive, in its order: kind, name, link, content.
func lines(t *testing.T, archive []byte) []string {
	t.Helper()
	var out []string
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		line := string(h.Typeflag) + " " + h.Name
		if h.Linkname != "" {
			line += " -> " + h.Linkname
		}
		if len(b) > 0 {
			line += " " + string(b)
		}
		out = append(out, line)
	}
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestALayerIsWhatChanged(t *testing.T) {
	below := pack(t, directory("dev"), regular("dev/console", ""), directory("etc"), regular("etc/hosts", "its own"), regular("etc/gone", "x"), regular("etc/kept", "k"),
		directory("lib"), directory("lib/all"), regular("lib/all/a", "a"), regular("lib/all/b", "b"), regular("one", "1"), hard("two", "one"), regular("three", "3"))
	later := regular("etc/later", "z")
	later.ModTime = time.Unix(2000, 0)
	changed := regular("three", "4") // of the same size and time
	now := pack(t, regular(".dockerenv", ""), directory(".sandpit"), regular(".sandpit/log", "l"), directory("dev"), regular("dev/pts", ""), directory("etc"),
		regular("etc/hosts", "another's"), regular("etc/kept", "k"), later, directory("lib"), regular("lib/all", "a file now"),
		regular("one", "1"), hard("two", "one"), hard("zero", "one"), changed, symbolic("link", "/etc/kept"))
	from, to := read(t, below), read(t, now)
	var b bytes.Buffer
	if err := disk.Between(from, to).Write(t.Context(), bytes.NewReader(now), &b); err != nil {
		t.Fatal(err)
	}
	want(t, "the layer", lines(t, b.Bytes()), "5 etc/", "0 etc/later z", "5 lib/", "0 lib/all a file now", "0 one 1", "1 two -> one", "1 zero -> one", "0 three 4",
		"2 link -> /etc/kept", "0 etc/.wh.gone")

	list := func(from, to *disk.Tree, limit int) []string {
		var out []string
		for _, f := range disk.Changes(from, to, limit).Files {
			out = append(out, f.Action+" "+f.Path)
		}
		return out
	}
	want(t, "the changes", list(from, to, 100), "deleted /etc/gone", "created /etc/later", "modified /lib/all", "deleted /lib/all/a", "deleted /lib/all/b", "created /link",
		"modified /three", "created /zero")
	if c := disk.Changes(from, to, 3); len(c.Files) != 3 || c.Total != 8 || !c.Complete {
		t.Errorf("at most three: got %+v", c)
	}
	want(t, "nothing", list(to, to, 100))
	odd := read(t, pack(t, regular("not \xff text\\", "")))
	if c := disk.Changes(read(t, pack(t)), odd, 10); len(c.Files) != 1 || c.Files[0].Path != `/not \xff text\\` || !c.Files[0].Escaped {
		t.Errorf("a name that is no text: %+v", c)
	}
}

// What breaks off is no tree that has less.
func TestABrokenArchiveIsNoTree(t *testing.T) {
	whole := pack(t, directory("a"), regular("a/file", strings.Repeat("x", 2000)), regular("b", "y"))
	for _, n := range []int{100, 1200, 2000} {
		if _, err := disk.Read(t.Context(), bytes.NewReader(whole[:n])); fault.Of(err) != fault.Unavailable {
			t.Errorf("%d bytes: got %v", n, err)
		}
	}
	if _, err := disk.Read(t.Context(), bytes.NewReader(pack(t, hard("a", "none")))); fault.Of(err) != fault.Unavailable {
		t.Errorf("a link to nothing: got %v", err)
	}
}

func take(t *testing.T, archive []byte) ([]string, error) {
	t.Helper()
	var b bytes.Buffer
	if _, err := disk.Take(t.Context(), bytes.NewReader(archive), &b, 1<<20); err != nil {
		return nil, err
	}
	return lines(t, b.Bytes()), nil
}

func TestALayerFromOutsideIsTakenInOrder(t *testing.T) {
	got, err := take(t, pack(t, directory("."), regular("workspace/.wh.never", ""), regular("workspace/.wh.d", ""), directory("workspace/d"), regular("workspace/d/x", "x"),
		regular("etc/.wh.shells", ""), regular("etc/hosts", "theirs"), directory("dev"), regular("dev/null", "no device"), regular(".sandpit/run/config.json", "{}"), hard("workspace/h", "./workspace/d/x"),
		regular("workspace/home/.wh.x", ""), directory("workspace/home")))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "what is taken", got, "5 workspace/d/", "0 workspace/d/x x", "1 workspace/h -> workspace/d/x", "5 workspace/home/", "5 etc/", "5 workspace/",
		"0 etc/.wh.shells", "0 workspace/home/.wh.x", "0 workspace/.wh.never", "0 workspace/d/.wh..wh..opq")
}

func TestHostileLayersAreRefused(t *testing.T) {
	node := func(kind byte) file { return file{tar.Header{Typeflag: kind, Name: "n", Devmajor: 1, Devminor: 1}, ""} }
	owner := regular("o", "")
	owner.Uid = 1 << 20
	for name, files := range map[string][]file{
		"Up": {regular("../x", "")}, "UpInTheMiddle": {regular("a/../../x", "")}, "ThroughALink": {symbolic("l", "/etc"), regular("l/x", "")},
		"ADirectoryThatBecomesALink": {directory("l"), symbolic("l", "/etc")}, "AHardLinkUp": {hard("h", "../../etc/passwd")}, "AHardLinkToNothing": {hard("h", "etc/passwd")},
		"AHardLinkThroughALink": {symbolic("l", "/etc"), hard("h", "l/passwd")}, "AHardLinkToADirectory": {directory("d"), hard("h", "d")},
		"AHardLinkToTheAgents": {regular(".sandpit/key", "k"), hard("h", ".sandpit/key")}, "ADisk": {node(tar.TypeBlock)}, "Memory": {node(tar.TypeChar)},
		"AKernelsPlace": {symbolic("proc", "/")}, "BelowTheAgentsLink": {symbolic(".sandpit", "/etc"), regular(".sandpit/x", "")}, "AllOfTheImage": {regular(".wh..wh..opq", "")},
		"DeletesNothing": {regular("a/.wh.", "")}, "DeletesUp": {regular("a/.wh...", "")}, "TheRootAsALink": {symbolic(".", "/etc")}, "ALongPath": {regular(strings.Repeat("d/", 2000)+"f", "")},
		"ALongName": {regular(strings.Repeat("d", 256), "")}, "AnOwner": {owner}, "AFileTwice": {regular("f", ""), regular("f", "")}, "ADirectoryTwice": {directory("d"), directory("d")},
		"AFileInTheLinksPlace": {symbolic("l", "/etc/passwd"), regular("l", "x")},
		"ALiteralMark":         {{tar.Header{Typeflag: tar.TypeReg, Name: "d/.wh.x", PAXRecords: map[string]string{"SANDPIT.literal": "1"}}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := take(t, pack(t, files...)); fault.Of(err) != fault.Invalid {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	// Attributes that give rights, or are the overlay's, are not taken; those of programs are.
	marked := regular("f", "")
	marked.PAXRecords = map[string]string{"SCHILY.xattr.user.note": "n", "SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.trusted.overlay.opaque": "y", "SCHILY.xattr.security.capability": "c"}
	var b bytes.Buffer
	if _, err := disk.Take(t.Context(), bytes.NewReader(pack(t, marked)), &b, 1<<20); err != nil {
		t.Fatal(err)
	}
	h, err := tar.NewReader(&b).Next()
	if err != nil || len(h.PAXRecords) != 1 || h.PAXRecords["SCHILY.xattr.user.note"] != "n" {
		t.Errorf("the attributes are %v, %v", h.PAXRecords, err)
	}
}

func TestNoMoreIsTakenThanAllowed(t *testing.T) {
	many := make([]file, 3000)
	for n := range many {
		many[n] = regular(fmt.Sprint(n), "")
	}
	for what, archive := range map[string][]byte{"a big file": pack(t, regular("big", strings.Repeat("x", 1<<20))), "many names": pack(t, many...)} {
		if _, err := take(t, archive); fault.Of(err) != fault.TooLarge {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// failing is a reader and a writer that fail.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWhoFailsIsTold(t *testing.T) {
	whole := pack(t, directory("a"), regular("a/file", strings.Repeat("x", 20000)))
	mine := errors.New("mine")
	if _, err := disk.Take(t.Context(), io.MultiReader(bytes.NewReader(whole[:3000]), failing{mine}), io.Discard, 1<<20); !errors.Is(err, mine) {
		t.Errorf("a reader that fails: %v", err)
	}
	if _, err := disk.Take(t.Context(), bytes.NewReader(whole), failing{mine}, 1<<20); !errors.Is(err, mine) || fault.Of(err) == fault.Invalid {
		t.Errorf("a writer that fails: %v", err)
	}
	for _, archive := range [][]byte{whole[:700], whole[:2000], bytes.Repeat([]byte("no archive "), 400)} {
		if _, err := disk.Take(t.Context(), bytes.NewReader(archive), io.Discard, 1<<20); fault.Of(err) != fault.Invalid {
			t.Errorf("%d bytes: got %v", len(archive), err)
		}
	}
}
