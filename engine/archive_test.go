// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

func (h *house) export(of, snap string) []byte {
	h.t.Helper()
	var b bytes.Buffer
	if err := h.engine.ExportSnapshot(h.t.Context(), alice, of, snap, &b); err != nil {
		h.t.Fatal("ExportSnapshot:", err)
	}
	return b.Bytes()
}

func TestArchives(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"TOKEN": "secret1"}, Metadata: map[string]string{"l": "secret2"}, Limits: sandbox.Limits{Pids: 99}})
	h.exec("box", "echo one > file; mkdir -p a/b; ln -s ../file a/link; printf x > 'a/b/odd name'; echo theirs > sandpit.json")
	snap := h.snapshot("box", "x")
	data := h.export("box", "x")

	t.Run("GoFromServerToServer", func(t *testing.T) {
		other := open(t, t.TempDir())
		got, err := other.engine.ImportSnapshot(t.Context(), alice, bytes.NewReader(data), engine.ImportRequest{Name: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		if got.ID == snap.ID || got.Name != "mine" || got.Sandbox != "" || got.Parent != "" || got.State != sandbox.SnapshotReady || got.Image != "python" ||
			got.ImageDigest != snap.ImageDigest || got.Limits != snap.Limits || len(got.Env) != 0 || got.CreatedBy != "alice" || got.Project != "default" || !strings.Contains(got.Detail, "imported") {
			t.Errorf("got %+v", got)
		}
		s := other.create(engine.CreateRequest{From: string(got.ID), Key: "box"})
		if out := other.exec("box", "cat file a/link 'a/b/odd name' sandpit.json"); string(out.Stdout) != "one\none\nxtheirs\n" {
			t.Errorf("inside: %q, %q", out.Stdout, out.Stderr)
		}
		if s.Limits != snap.Limits || len(s.Env) != 0 {
			t.Errorf("got %+v", s)
		}
		evs := other.events("")
		if evs[0].Type != sandbox.EventSnapshot || evs[0].ProcessID != string(got.ID) || !strings.Contains(evs[0].Detail, "imported") {
			t.Errorf("the event: %+v", evs[0])
		}
		_, err = other.engine.ImportSnapshot(t.Context(), alice, bytes.NewReader(data), engine.ImportRequest{Name: "mine"})
		wantCode(t, err, fault.Exists)
		if _, err := other.engine.ImportSnapshot(t.Context(), mary, bytes.NewReader(data), engine.ImportRequest{Name: "mine"}); err != nil {
			t.Errorf("in another project: %v", err)
		}
		if _, err := other.engine.ImportSnapshot(t.Context(), alice, bytes.NewReader(data), engine.ImportRequest{}); err != nil {
			t.Errorf("without a name: %v", err)
		}
		other.keptWhole()
	})
	t.Run("HoldNoSecretsOfTheRecord", func(t *testing.T) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(z)
		if err != nil || bytes.Contains(all, []byte("secret1")) || bytes.Contains(all, []byte("secret2")) || bytes.Contains(all, []byte("TOKEN")) {
			t.Errorf("a secret is in it, or: %v", err)
		}
	})
	t.Run("AreReadByAnyTar", func(t *testing.T) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for r := tar.NewReader(z); ; {
			hd, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(names) == 0 && hd.Name != "sandpit.json" {
				t.Errorf("the first entry is %q", hd.Name)
			}
			names[strings.TrimPrefix(hd.Name, "./")] = true
		}
		if !names["workspace/file"] || !names["workspace/a/b/odd name"] {
			t.Errorf("entries: %v", names)
		}
	})
	t.Run("ThatFailToBeWrittenSaySo", func(t *testing.T) {
		broken := errors.New("broken pipe")
		if err := h.engine.ExportSnapshot(t.Context(), alice, "box", "x", failingWriter{broken}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if err := h.engine.DeleteSnapshot(t.Context(), alice, "box", "x"); err != nil {
			t.Errorf("it is held still: %v", err)
		}
		wantCode(t, h.engine.ExportSnapshot(t.Context(), alice, "box", "x", io.Discard), fault.NotFound)
	})
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// packed makes an archive of a first entry and of what follows.
func packed(t *testing.T, name, meta string, more func(*tar.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	entry(t, w, &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, meta)
	if more != nil {
		more(w)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func entry(t *testing.T, w *tar.Writer, h *tar.Header, text string) {
	t.Helper()
	h.Size = int64(len(text))
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

const goodMeta = `{"format":1,"image":"python","image_digest":"sha256:python","limits":{"cpu":1,"memory_mb":64,"disk_mb":64,"pids":64},"created_at":"2026-01-02T03:04:05Z"}`

func TestAHostileArchive(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir(), func(o *engine.Options) {
		o.Images = oneBuild{}
		o.Defaults.Limits = sandbox.Limits{DiskMB: 16}
	})
	good := packed(t, "sandpit.json", goodMeta, nil)
	meta := func(from, to string) []byte {
		text := strings.Replace(goodMeta, from, to, 1)
		if text == goodMeta {
			t.Fatalf("%s is not in it", from)
		}
		return packed(t, "sandpit.json", text, nil)
	}
	zeros := func(n int64) func(*tar.Writer) {
		return func(w *tar.Writer) {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Mode: 0o644, Size: n}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(w, zeroes{}, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		data []byte
		want fault.Code
	}{
		"nothing":                  {nil, fault.Invalid},
		"no gzip":                  {[]byte("hello"), fault.Invalid},
		"no tar":                   {zipped(t, "hello"), fault.Invalid},
		"cut off":                  {good[:len(good)-9], fault.Invalid},
		"a first entry of a name":  {packed(t, "root/sandpit.json", goodMeta, nil), fault.Invalid},
		"no JSON":                  {packed(t, "sandpit.json", "{", nil), fault.Invalid},
		"an unknown field":         {meta(`"format":1`, `"format":1,"env":{}`), fault.Invalid},
		"another format":           {meta(`"format":1`, `"format":2`), fault.Invalid},
		"no format":                {meta(`"format":1,`, ``), fault.Invalid},
		"two values":               {packed(t, "sandpit.json", goodMeta+goodMeta, nil), fault.Invalid},
		"a huge first entry":       {packed(t, "sandpit.json", goodMeta+strings.Repeat(" ", 70<<10), nil), fault.TooLarge},
		"an image with a newline":  {meta(`"image":"python"`, `"image":"a\nb"`), fault.Invalid},
		"no image":                 {meta(`"image":"python"`, `"image":""`), fault.Invalid},
		"a long digest":            {meta(`sha256:python`, strings.Repeat("d", 300)), fault.Invalid},
		"an image that is unknown": {meta(`"image":"python"`, `"image":"perl"`), fault.NotFound},
		"another build":            {meta(`sha256:python`, `sha256:other`), fault.NotFound},
		"limits beyond all":        {meta(`"disk_mb":64`, `"disk_mb":99999999`), fault.Invalid},
		"a time of no age":         {meta(`2026-01-02T03:04:05Z`, `0001-01-01T00:00:00Z`), fault.Invalid},
		"a name that means a time": {meta(`"format":1`, `"format":1,"name":"now"`), fault.Invalid},
		"a way out": {packed(t, "sandpit.json", goodMeta, func(w *tar.Writer) {
			entry(t, w, &tar.Header{Typeflag: tar.TypeReg, Name: "../../evil", Mode: 0o644}, "x")
		}), fault.Invalid},
		"more than a disk holds": {packed(t, "sandpit.json", goodMeta, zeros(17<<20)), fault.TooLarge},
		"more than is read":      {packed(t, "sandpit.json", goodMeta, zeros(200<<20)), fault.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.engine.ImportSnapshot(t.Context(), alice, bytes.NewReader(c.data), engine.ImportRequest{Name: "x"})
			wantCode(t, err, c.want)
			if snaps, _ := h.keptRecords(); len(snaps) != 0 {
				t.Errorf("records are left: %+v", snaps[0])
			}
			h.keptWhole()
		})
	}
	t.Run("SaysWhichImageItNeeds", func(t *testing.T) {
		_, err := h.engine.ImportSnapshot(t.Context(), alice, bytes.NewReader(meta(`sha256:python`, `sha256:other`)), engine.ImportRequest{})
		if e := fault.As(err); !strings.Contains(e.Message, "python") || !strings.Contains(e.Message, "sha256:other") || !strings.Contains(e.Remedy, "build") {
			t.Errorf("message %q, remedy %q", e.Message, e.Remedy)
		}
	})
	t.Run("ButAPlainOneIsTaken", func(t *testing.T) {
		snap, err := h.engine.ImportSnapshot(t.Context(), alice, bytes.NewReader(good), engine.ImportRequest{})
		if err != nil || snap.Limits.Pids != 64 {
			t.Errorf("got %+v, %v", snap, err)
		}
	})
	t.Run("NorMayItsNameBeAnything", func(t *testing.T) {
		_, err := h.engine.ImportSnapshot(t.Context(), alice, bytes.NewReader(good), engine.ImportRequest{Name: "base"})
		wantCode(t, err, fault.Invalid)
		_, err = h.engine.ImportSnapshot(t.Context(), nobody, bytes.NewReader(good), engine.ImportRequest{})
		wantCode(t, err, fault.Denied)
	})
	t.Run("NorDoesItStayWhereTheDriverOrTheCallerFails", func(t *testing.T) {
		n, _ := h.keptRecords()
		for _, how := range []string{"before", "after"} {
			if how == "before" {
				h.faulty.set(failing("import"), nil)
			} else {
				h.faulty.set(nil, failing("import"))
			}
			_, err := h.engine.ImportSnapshot(t.Context(), alice, bytes.NewReader(good), engine.ImportRequest{})
			wantCode(t, err, fault.Unavailable)
		}
		ctx, cancel := context.WithCancel(t.Context())
		h.faulty.set(func(context.Context, string) error { cancel(); return nil }, nil)
		_, err := h.engine.ImportSnapshot(ctx, alice, bytes.NewReader(good), engine.ImportRequest{})
		wantCode(t, err, fault.Canceled)
		h.faulty.set(nil, nil)
		if m, _ := h.keptRecords(); len(m) != len(n) {
			t.Errorf("%d records, %d before", len(m), len(n))
		}
		h.keptWhole()
	})
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// oneBuild is a catalogue that has one build of each image.
type oneBuild struct{ catalogue }

func (c oneBuild) FindDigest(name, digest string) (image.Image, error) {
	img, err := c.catalogue.FindDigest(name, digest)
	if err == nil && img.Digest != digest {
		err = fault.New(fault.NotFound, "there is no build %s of %s", digest, name)
	}
	return img, err
}
