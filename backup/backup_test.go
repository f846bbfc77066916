// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"sandpit.dev/backup"
	"sandpit.dev/fault"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// long has three entries and a bit.
var long = strings.Repeat("0123456789abcdef", 3<<16) + "end"

func write(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := backup.NewWriter(&b, backup.Head{Version: "v1", Time: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct{ name, data string }{{"empty", ""}, {"disks/long", long}, {"small", "x"}} {
		if err := w.Part(p.name, text(p.data), nil); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	err = w.Part("disks/broken", func(w io.Writer) error {
		_, _ = io.WriteString(w, "the half")
		return broken
	}, func(err error) string { return err.Error() })
	if err != nil || len(w.LeftOut()) != 1 {
		t.Fatalf("a part that breaks: %v, left out: %v", err, w.LeftOut())
	}
	if err := w.Part("small", text("again"), nil); err == nil {
		t.Error("a part was taken twice")
	}
	if err := w.Part("../up", text("up"), nil); err == nil {
		t.Error("a name that leads up was taken")
	}
	if err := w.Close([]backup.Image{{Name: "python", Digest: "d"}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t *testing.T, b []byte) (*os.File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, path
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	b := write(t)
	if _, err := backup.Verify(iotest.OneByteReader(bytes.NewReader(b))); err != nil {
		t.Fatal(err)
	}
	f, path := open(t, b)
	file, err := backup.Open(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := file.Manifest; m.Version != "v1" || len(m.Parts) != 4 || m.Parts[3].LeftOut != "broken" || len(m.Images) != 1 {
		t.Errorf("the manifest is %+v", m)
	}
	for name, want := range map[string]string{"small": "x", "disks/long": long, "empty": ""} {
		r, err := file.Part(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.HalfReader(r))
		if err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
	for _, name := range []string{"disks/broken", "other"} {
		if _, err := file.Part(name); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v; want that it is not there", name, err)
		}
	}
	// What is changed after the check is seen.
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if _, err := w.WriteAt([]byte("X"), int64(bytes.Index(b, []byte("0123456789abcdef0123456789abcdef")))); err != nil {
		t.Fatal(err)
	}
	r, err := file.Part("disks/long")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !fault.Is(err, fault.Invalid) {
		t.Errorf("a part that was changed after the check: %v", err)
	}
}

// entries are a backup taken apart.
type entry struct {
	h    *tar.Header
	data []byte
}

func apart(t *testing.T, b []byte) []entry {
	t.Helper()
	var all []entry
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{h, data})
	}
}

func together(t *testing.T, all []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range all {
		e.h.Size = int64(len(e.data))
		if err := w.WriteHeader(e.h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestABackupThatIsNotWholeIsRefused(t *testing.T) {
	whole := write(t)
	if _, err := backup.Verify(bytes.NewReader(together(t, apart(t, whole)))); err != nil {
		t.Fatalf("taken apart and put together: %v", err)
	}
	for n := 0; n < len(whole)-1024; n += len(whole) / 40 {
		if _, err := backup.Verify(bytes.NewReader(whole[:n])); !fault.Is(err, fault.Invalid) {
			t.Errorf("cut off after %d bytes: %v", n, err)
		}
	}
	// 0: the head, 1: empty, 2 to 5: disks/long, 6: small, 7: disks/broken, 8: the manifest.
	for name, change := range map[string]func([]entry) []entry{
		"a byte of a part":      func(a []entry) []entry { a[3].data[5] ^= 1; return a },
		"an entry less":         func(a []entry) []entry { return append(a[:4], a[5:]...) },
		"two entries exchanged": func(a []entry) []entry { a[3], a[4] = a[4], a[3]; return a },
		"a part twice":          func(a []entry) []entry { return append(append(append([]entry{}, a[:8]...), a[6]), a[8]) },
		"a part less":           func(a []entry) []entry { return append(a[:6], a[7:]...) },
		"no head":               func(a []entry) []entry { return a[1:] },
		"no manifest":           func(a []entry) []entry { return a[:8] },
		"two manifests":         func(a []entry) []entry { return append(a, a[8]) },
		"a link for a part": func(a []entry) []entry {
			a[6].h.Typeflag, a[6].h.Linkname, a[6].data = tar.TypeSymlink, "/etc", nil
			return a
		},
		"a directory for a part": func(a []entry) []entry { a[6].h.Typeflag, a[6].data = tar.TypeDir, nil; return a },
		"a name that leads up":   func(a []entry) []entry { a[6].h.Name = "../up.00000000"; return a },
		"an absolute name":       func(a []entry) []entry { a[6].h.Name = "/etc/passwd.00000000"; return a },
		"an entry too large":     func(a []entry) []entry { a[6].data = make([]byte, 2<<20); return a },
		"an unknown field": func(a []entry) []entry {
			a[8].data = bytes.Replace(a[8].data, []byte(`"size"`), []byte(`"sise"`), 1)
			return a
		},
		"a part that was left out, restored": func(a []entry) []entry {
			a[8].data = bytes.Replace(a[8].data, []byte(`"left_out"`), []byte(`"name"`), 1)
			return a
		},
	} {
		if _, err := backup.Verify(bytes.NewReader(together(t, change(apart(t, whole))))); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v; want it refused", name, err)
		}
	}
	broke := errors.New("the connection broke")
	if _, err := backup.Verify(io.MultiReader(bytes.NewReader(whole[:2<<20]), iotest.ErrReader(broke))); !errors.Is(err, broke) {
		t.Errorf("a reader that fails: %v", err)
	}
}
