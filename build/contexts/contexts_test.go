// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package contexts

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	one = "0123456789abcdef0123456789abcdef"
	two = "fedcba9876543210fedcba9876543210"
)

type house struct {
	*Store
	t   *testing.T
	dir string
	at  time.Time
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, dir: filepath.Join(t.TempDir(), "contexts"), at: time.Unix(1_000_000, 0)}
	s, err := Open(Options{Dir: h.dir, Now: func() time.Time { return h.at }})
	if err != nil {
		t.Fatal(err)
	}
	h.Store = s
	return h
}

// left returns how many files there are, and how many bytes are counted.
func (h *house) left(project string) (files int, bytes int64) {
	h.t.Helper()
	err := filepath.WalkDir(h.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.projects[project]; p != nil {
		bytes = p.bytes
	}
	return files, bytes
}

func (h *house) put(project, hash string, content []byte) Object {
	h.t.Helper()
	o, err := h.Put(project, hash, bytes.NewReader(content), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return o
}

func wantCode(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if fault.Of(err) != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

// packed is an archive of entries.
func packed(t *testing.T, all ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range all {
		content := h.Uname // of a file
		h.Uname, h.Mode, h.Size = "", 0o644, int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Uname: content}
}

func TestWhatIsKeptIsOneProjectsAndEnds(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.put("a", one, []byte("first"))
	again := h.put("a", one, []byte("again"))
	if got, err := h.Find("a", one); err != nil || got != again {
		t.Errorf("found %+v, %v", got, err)
	}
	if n, b := h.left("a"); n != 1 || b != 5 {
		t.Errorf("%d files of %d bytes are left, want 1 of 5", n, b)
	}
	_, err := h.Find("b", one)
	wantCode(t, "of another project", err, fault.NotFound)
	if all := h.List("b", ""); len(all) != 0 {
		t.Errorf("another project sees %v", all)
	}
	if all := h.List("a", one[:4]); len(all) != 1 {
		t.Errorf("the project sees %v", all)
	}
	h.at = h.at.Add(Keep + time.Second)
	h.Sweep()
	if n, b := h.left("a"); n != 0 || b != 0 {
		t.Errorf("after a day %d files of %d bytes are left", n, b)
	}
	h.put("a", one, []byte("x"))
	h.Remove("a", []string{one, two})
	if n, b := h.left("a"); n != 0 || b != 0 {
		t.Errorf("after it was built %d files of %d bytes are left", n, b)
	}
	// What an earlier server left goes when the next one starts.
	h.put("a", one, []byte("x"))
	if _, err := Open(Options{Dir: h.dir}); err != nil {
		t.Fatal(err)
	}
	if n, _ := h.left("a"); n != 0 {
		t.Errorf("after a start %d files are left", n)
	}
}

func TestWhatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, hash := range []string{"", "..", "../../etc/passwd", one + "/..", strings.ToUpper(one), one + "0", "new-x", "\x00" + one[1:]} {
		_, err := h.Put("a", hash, strings.NewReader("x"), nil)
		wantCode(t, fmt.Sprintf("the hash %q", hash), err, fault.Invalid)
		_, err = h.Begin("a", hash)
		wantCode(t, fmt.Sprintf("an upload of the hash %q", hash), err, fault.Invalid)
	}
	_, err := h.Put("a", one, strings.NewReader("x"), func() error { return fault.New(fault.Invalid, "no") })
	wantCode(t, "what came changed", err, fault.Invalid)
	_, err = h.Put("a", one, io.MultiReader(strings.NewReader("x"), broken{}), nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("what broke off: %v", err)
	}
	if n, b := h.left("a"); n != 0 || b != 0 {
		t.Errorf("%d files of %d bytes are left", n, b)
	}
	// A project is refused what is over its bound, and another one is not.
	h.mu.Lock()
	h.of("a").bytes = MaxBytes - 1
	h.mu.Unlock()
	_, err = h.Put("a", one, strings.NewReader("x"), nil)
	wantCode(t, "over the bound", err, fault.Exhausted)
	h.put("b", one, []byte("x"))
	h.mu.Lock()
	for i := range MaxObjects {
		h.of("b").objects[fmt.Sprint(i)] = Object{}
	}
	h.mu.Unlock()
	_, err = h.Put("b", two, strings.NewReader("x"), nil)
	wantCode(t, "too many", err, fault.Exhausted)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestUploadsInParts(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, err := h.Begin("a", one)
	if err != nil {
		t.Fatal(err)
	}
	part := func(n int, text string) Part {
		t.Helper()
		o, err := h.PutPart("a", one, id, n, strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return Part{n, o.Tag}
	}
	part(2, "wrong")
	second, first, unused := part(2, "world"), part(1, "hello "), part(3, "unused")
	for what, try := range map[string]func() error{
		"another project's": func() error {
			_, err := h.PutPart("b", one, id, 1, strings.NewReader("x"), nil)
			return err
		},
		"another object's":       func() error { _, err := h.Complete("a", two, id, []Part{first}); return err },
		"another project's end":  func() error { return h.Abort("b", one, id) },
		"another project's list": func() error { _, err := h.Complete("b", one, id, []Part{first}); return err },
	} {
		wantCode(t, what, try(), fault.NotFound)
	}
	for what, parts := range map[string][]Part{
		"none": {}, "not in order": {second, first}, "twice": {first, first}, "one that is not here": {{9, first.Tag}}, "another content": {{1, second.Tag}},
	} {
		_, err := h.Complete("a", one, id, parts)
		wantCode(t, what, err, fault.Invalid)
	}
	for _, n := range []int{0, -1, MaxParts + 1} {
		_, err := h.PutPart("a", one, id, n, strings.NewReader("x"), nil)
		wantCode(t, fmt.Sprint("part ", n), err, fault.Invalid)
	}
	_ = unused
	o, err := h.Complete("a", one, id, []Part{first, second})
	if err != nil || o.Size != 11 {
		t.Fatal(o, err)
	}
	if n, b := h.left("a"); n != 1 || b != 11 {
		t.Errorf("%d files of %d bytes are left, want 1 of 11", n, b)
	}
	text, err := os.ReadFile(filepath.Join(h.dir, folder("a"), one))
	if string(text) != "hello world" || err != nil {
		t.Errorf("it is %q, %v", text, err)
	}
	// One that is ended, and one of which nothing comes.
	for _, end := range []func(id string){
		func(id string) {
			if err := h.Abort("a", one, id); err != nil {
				t.Error(err)
			}
		},
		func(string) { h.at = h.at.Add(KeepPart + time.Second); h.Sweep() },
	} {
		if id, err = h.Begin("a", one); err != nil {
			t.Fatal(err)
		}
		part(1, "x")
		end(id)
		if n, b := h.left("a"); n != 1 || b != 11 {
			t.Errorf("%d files of %d bytes are left, want 1 of 11", n, b)
		}
	}
	for range MaxUploads {
		if _, err := h.Begin("a", one); err != nil {
			t.Fatal(err)
		}
	}
	_, err = h.Begin("a", one)
	wantCode(t, "too many uploads", err, fault.Exhausted)
}

// read is what a build makes of an archive.
func (h *house) read(text string, hashes ...string) (*dockerfile.Context, error) {
	h.t.Helper()
	r, err := h.Archive("a", text, hashes)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	spool, err := os.Create(filepath.Join(h.t.TempDir(), "spool"))
	if err != nil {
		h.t.Fatal(err)
	}
	return dockerfile.ReadContext(h.t.Context(), r, spool, dockerfile.Limits{})
}

func TestTheArchiveOfABuild(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.put("a", one, packed(t, tar.Header{Typeflag: tar.TypeDir, Name: "src/"}, file("src/a", "old"), file("src/b", "b"), file("Dockerfile", "no")))
	h.put("a", two, packed(t, tar.Header{Typeflag: tar.TypeDir, Name: "src/"}, file("src/a", "new"), file("tmp/"+strings.Repeat("long/", 60)+"c", "c")))
	c, err := h.read("FROM python\n", one, two)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, want := range map[string]string{"src/a": "new", "src/b": "b", "tmp/" + strings.Repeat("long/", 60) + "c": "c", "Dockerfile": "FROM python\n"} {
		if got, err := c.File(name, 100); string(got) != want || err != nil {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	_, err = h.read("FROM python\n", strings.Repeat("0", 32))
	wantCode(t, "what was not sent", err, fault.NotFound)
	_, err = h.read("FROM python\n", "../"+one)
	wantCode(t, "what is no hash", err, fault.Invalid)
	// Removed meanwhile it is whole all the same; and a reader that goes away leaves nothing behind.
	r, err := h.Archive("a", "FROM python\n", []string{one})
	if err != nil {
		t.Fatal(err)
	}
	h.Remove("a", []string{one})
	if got, err := io.ReadAll(r); len(got) < 2048 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_ = r.Close()
	if r, err = h.Archive("a", "FROM python\n", []string{two}); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
}

func TestHostileArchivesAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	for what, content := range map[string][]byte{
		"a name above the top":   packed(t, file("../x", "x")),
		"a name from the root":   packed(t, file("/etc/passwd", "x")),
		"a dot-dot within":       packed(t, file("a/../../x", "x")),
		"a name below a link":    packed(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}, file("l/passwd", "x")),
		"a hard link outside":    packed(t, tar.Header{Typeflag: tar.TypeLink, Name: "l", Linkname: "../../etc/passwd"}),
		"a hard link to nothing": packed(t, tar.Header{Typeflag: tar.TypeLink, Name: "l", Linkname: "none"}),
		"a device":               packed(t, tar.Header{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8}),
		"a pipe":                 packed(t, tar.Header{Typeflag: tar.TypeFifo, Name: "p"}),
		"a file twice":           packed(t, file("a", "x"), file("a", "y")),
		"a file as a directory":  packed(t, file("Dockerfile/x", "x")),
		"no archive":             []byte(strings.Repeat("nonsense ", 200)),
		"half of one":            packed(t, file("a", strings.Repeat("x", 4096)))[:2000],
	} {
		h.put("a", one, content)
		c, err := h.read("FROM python\n", one)
		if err == nil {
			_ = c.Close()
		}
		wantCode(t, what, err, fault.Invalid)
	}
}
