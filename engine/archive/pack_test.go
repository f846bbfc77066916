// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

var meta = Meta{Image: "python", ImageDigest: "sha256:x", Limits: sandbox.DefaultLimits(), CreatedAt: time.Unix(1e9, 0)}

func noise(n int, seed byte) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// entry is one of a layer, in short.
type entry struct {
	name, link string
	kind       byte
	data       []byte
	records    map[string]string
}

func layerOf(t *testing.T, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.link, Mode: 0o640, Uid: 1000, Size: int64(len(e.data)), ModTime: time.Unix(1e9, 5), PAXRecords: e.records, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
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

// imageOf makes a directory of files.
func imageOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pack(t *testing.T, root string, layer []byte) ([]byte, Packed) {
	t.Helper()
	var b bytes.Buffer
	p, err := Pack(t.Context(), &b, meta, root, func(w io.Writer) error {
		_, err := w.Write(layer)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), p
}

func unpack(t *testing.T, data []byte, p Packed, root string) (got []byte, ended bool, err error) {
	t.Helper()
	err = Unpack(t.Context(), bytes.NewReader(data), p, root, func(m Meta, r io.Reader) error {
		if m.Image != meta.Image || m.ImageDigest != meta.ImageDigest {
			t.Errorf("it is of %+v", m)
		}
		var err error
		got, err = io.ReadAll(r)
		ended = err == nil
		return err
	})
	return got, ended, err
}

func entries() []entry {
	shared := noise(300<<10, 1)
	almost := bytes.Clone(shared)
	almost[200<<10] ^= 1
	early := bytes.Clone(shared)
	early[0] ^= 1
	return []entry{
		{name: "./", kind: tar.TypeDir},
		{name: "workspace/", kind: tar.TypeDir, records: map[string]string{"SCHILY.xattr.user.a": "b=c\n"}},
		{name: "workspace/own", kind: tar.TypeReg, data: noise(100<<10, 2)},
		{name: "workspace/shared", kind: tar.TypeReg, data: shared, records: map[string]string{"SCHILY.xattr.user.x": "y"}},
		{name: "workspace/almost", kind: tar.TypeReg, data: almost},
		{name: "workspace/early", kind: tar.TypeReg, data: early},
		{name: "workspace/small", kind: tar.TypeReg, data: []byte("small")},
		{name: "workspace/empty", kind: tar.TypeReg},
		{name: "workspace/hard", kind: tar.TypeLink, link: "workspace/shared"},
		{name: "workspace/soft", kind: tar.TypeSymlink, link: "../../etc/passwd"},
		{name: "etc/.wh.gone", kind: tar.TypeReg},
		{name: "workspace/holes", kind: tar.TypeReg, data: noise(8<<10, 3), records: map[string]string{"SANDPIT.sparse": "1000000000"}},
		{name: "workspace/" + strings.Repeat("long/", 60) + "\xff\xfe", kind: tar.TypeReg, data: []byte("x")},
	}
}

func TestWhatIsUnpackedIsWhatWasPacked(t *testing.T) {
	layer := layerOf(t, entries())
	root := imageOf(t, map[string][]byte{
		"usr/lib/shared": noise(300<<10, 1), "usr/lib/alike": append(noise(64<<10, 1), make([]byte, 236<<10)...), "small": []byte("small"), "holes": noise(8<<10, 3),
	})
	for name, root := range map[string]string{"with the image": root, "without": ""} {
		data, p := pack(t, root, layer)
		got, ended, err := unpack(t, data, p, root)
		if err != nil || !ended || !bytes.Equal(got, layer) {
			t.Errorf("%s: %d bytes of %d came back, the same: %v; %v", name, len(got), len(layer), bytes.Equal(got, layer), err)
		}
		if p.PackedBytes != int64(len(data)) || p.Bytes != int64(len(layer)) {
			t.Errorf("%s: %+v of %d and %d bytes", name, p, len(data), len(layer))
		}
		if err := Verify(t.Context(), bytes.NewReader(data), p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "with the image" && p.PackedBytes > int64(len(layer))-290<<10 {
			t.Errorf("%d bytes of %d are packed: what the image has was packed, too", p.PackedBytes, len(layer))
		}
	}
}

func TestWhatIsNotWhatWasPackedHasNoEnd(t *testing.T) {
	layer := layerOf(t, append(entries()[:2], entry{name: "workspace/own", kind: tar.TypeReg, data: noise(8<<10, 2)}))
	data, p := pack(t, "", layer)
	other, _ := pack(t, "", layerOf(t, entries()[:2]))
	refuse := func(name string, data []byte, p Packed) {
		t.Helper()
		got, ended, err := unpack(t, data, p, "")
		if f := fault.As(err); err == nil || f.Code != fault.State && f.Code != fault.Invalid || ended {
			t.Errorf("%s: %d bytes, ended %v, %v", name, len(got), ended, err)
		}
		if err := Verify(t.Context(), bytes.NewReader(data), p); err == nil {
			t.Errorf("%s: it is said to be what was packed", name)
		}
	}
	for i := 0; i < len(data); i += 1 + len(data)/23 {
		flipped := bytes.Clone(data)
		flipped[i] ^= 0x10
		refuse("a bit flipped", flipped, p)
		refuse("cut off", data[:i], p)
	}
	refuse("the last byte missing", data[:len(data)-1], p)
	refuse("a byte more", append(bytes.Clone(data), 0), p)
	refuse("a frame more", append(bytes.Clone(data), data...), p)
	refuse("another layer", other, p)
}

// squeeze makes packed bytes of a tar stream as somebody else may.
func squeeze(t *testing.T, stream []byte) ([]byte, Packed) {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := meta.write(z); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(stream); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	out := &summing{w: io.Discard}
	in := &checked{r: bytes.NewReader(b.Bytes()), sum: sha256.New(), want: Packed{PackedBytes: int64(b.Len())}}
	_, _ = io.Copy(out, in)
	return b.Bytes(), Packed{Digest: digestOf(in.sum), PackedBytes: int64(b.Len()), Bytes: int64(len(stream))}
}

// Even with a digest that agrees, names in the image lead nowhere else, and there is no more than was packed.
func TestNamesInTheImageLeadNowhereElse(t *testing.T) {
	root := imageOf(t, map[string][]byte{"file": noise(5000, 1)})
	outside := filepath.Join(filepath.Dir(root), "outside")
	if err := os.WriteFile(outside, noise(5000, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": outside, "relative": "../outside", "dirlink": ".."} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.New()
	sum.Write(noise(5000, 1))
	good := map[string]string{imageRecord: "file", digestRecord: digestOf(sum), sizeRecord: "5000"}
	with := func(k, v string) map[string]string {
		m := map[string]string{}
		for name, value := range good {
			m[name] = value
		}
		m[k] = v
		return m
	}
	for name, records := range map[string]map[string]string{
		"up": with(imageRecord, "../outside"), "absolute": with(imageRecord, outside), "a link": with(imageRecord, "link"), "a relative link": with(imageRecord, "relative"),
		"through a link": with(imageRecord, "dirlink/outside"), "a directory": with(imageRecord, "."), "missing": with(imageRecord, "nothing"), "a device": with(imageRecord, "/dev/zero"),
		"another digest": with(digestRecord, "sha256:00"), "another size": with(sizeRecord, "4999"), "a size that is none": with(sizeRecord, "-1"),
	} {
		data, p := squeeze(t, layerOf(t, []entry{{name: "f", kind: tar.TypeReg, records: records}}))
		if got, ended, err := unpack(t, data, p, root); !fault.Is(err, fault.State) || ended {
			t.Errorf("%s: %d bytes, ended %v, %v", name, len(got), ended, err)
		}
	}
	data, p := squeeze(t, layerOf(t, []entry{{name: "f", kind: tar.TypeReg, records: good}}))
	if got, ended, err := unpack(t, data, p, root); err != nil || !ended || !bytes.Contains(got, noise(5000, 1)) {
		t.Errorf("the one that is right: %d bytes, ended %v, %v", len(got), ended, err)
	}
	if _, _, err := unpack(t, data, p, ""); !fault.Is(err, fault.State) {
		t.Errorf("without an image: %v", err)
	}
	// A thousand names of one file are a bomb, as a long run of zeros is.
	var many []entry
	for range 300 {
		many = append(many, entry{name: "f", kind: tar.TypeReg, records: good})
	}
	data, p = squeeze(t, layerOf(t, many))
	p.Bytes = 1 << 10
	if _, ended, err := unpack(t, data, p, root); err == nil || ended {
		t.Errorf("many names of one file: ended %v, %v", ended, err)
	}
	data, p = squeeze(t, layerOf(t, []entry{{name: "f", kind: tar.TypeReg, data: make([]byte, 8<<20)}}))
	p.Bytes = 1 << 10
	if _, ended, err := unpack(t, data, p, root); err == nil || ended {
		t.Errorf("zeros: ended %v, %v", ended, err)
	}
}

func TestErrorsComeThrough(t *testing.T) {
	broken := errors.New("the disk broke")
	if _, err := Pack(t.Context(), io.Discard, meta, "", func(w io.Writer) error {
		_, _ = w.Write(layerOf(t, entries())[:5000])
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("of the layer: %v", err)
	}
	if _, err := Pack(t.Context(), failingWriter{broken}, meta, "", func(w io.Writer) error {
		_, err := w.Write(layerOf(t, []entry{{name: "f", kind: tar.TypeReg, data: noise(20<<20, 1)}}))
		return err
	}); !errors.Is(err, broken) {
		t.Errorf("of the writer: %v", err)
	}
	data, p := pack(t, "", layerOf(t, entries()))
	if err := Unpack(t.Context(), io.MultiReader(bytes.NewReader(data[:1000]), failingReader{broken}), p, "", func(_ Meta, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}); !errors.Is(err, broken) {
		t.Errorf("of the reader: %v", err)
	}
	if err := Unpack(t.Context(), bytes.NewReader(data), p, "", func(_ Meta, r io.Reader) error {
		_, _ = io.CopyN(io.Discard, r, 700)
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("of who reads the layer: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Pack(gone, io.Discard, meta, "", func(w io.Writer) error { _, err := w.Write(layerOf(t, entries())); return err }); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }
