// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// file is an entry of a tar archive that a test makes.
type file struct {
	name  string
	body  string
	kind  byte // 0: a file, a directory where the name ends in a slash
	to    string
	mode  int64
	uid   int
	xattr map[string]string
}

func tarOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: f.kind, Linkname: f.to, Mode: f.mode, Uid: f.uid, Gid: f.uid, Size: int64(len(f.body)), Format: tar.FormatPAX}
		if f.kind == 0 {
			h.Typeflag = tar.TypeReg
			if strings.HasSuffix(f.name, "/") {
				h.Typeflag = tar.TypeDir
			}
		}
		if h.Mode == 0 {
			h.Mode = 0o644
			if h.Typeflag == tar.TypeDir {
				h.Mode = 0o755
			}
		}
		for k, v := range f.xattr {
			if h.PAXRecords == nil {
				h.PAXRecords = map[string]string{}
			}
			h.PAXRecords[xattrRecord+k] = v
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jsonOf(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// object is what JSON objects are made of.
type object = map[string]any

// configOf is a config of layers that are not compressed.
func configOf(t testing.TB, more object, layers ...[]byte) []byte {
	var ids []string
	for _, l := range layers {
		ids = append(ids, digestOf(l))
	}
	c := object{"architecture": runtime.GOARCH, "os": "linux", "rootfs": object{"type": "layers", "diff_ids": ids}}
	for k, v := range more {
		c[k] = v
	}
	return jsonOf(t, c)
}

// layoutOf is an OCI layout of one image as a tar archive; its layers are compressed by press.
func layoutOf(t testing.TB, name string, config []byte, press func(testing.TB, []byte) []byte, layers ...[]byte) []byte {
	t.Helper()
	files := []file{{name: "oci-layout", body: `{"imageLayoutVersion":"1.0.0"}`}}
	put := func(data []byte, media string) object {
		files = append(files, file{name: blobsFolder + strings.TrimPrefix(digestOf(data), digestPrefix), body: string(data)})
		return object{"mediaType": media, "digest": digestOf(data), "size": len(data)}
	}
	var list []object
	seen := map[string]bool{}
	for _, l := range layers {
		data := press(t, l)
		d := object{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digestOf(data), "size": len(data)}
		if !seen[digestOf(data)] {
			d = put(data, "application/vnd.oci.image.layer.v1.tar+gzip")
		}
		seen[digestOf(data)] = true
		list = append(list, d)
	}
	manifest := jsonOf(t, object{"schemaVersion": 2, "mediaType": ociManifest, "config": put(config, "application/vnd.oci.image.config.v1+json"), "layers": list})
	d := put(manifest, ociManifest)
	if name != "" {
		d["annotations"] = object{shortName: name}
	}
	files = append(files, file{name: "index.json", body: string(jsonOf(t, object{"schemaVersion": 2, "manifests": []object{d}}))})
	return tarOf(t, files...)
}

// savedOf is what docker save wrote before it wrote layouts.
func savedOf(t testing.TB, tag string, config []byte, layers ...[]byte) []byte {
	t.Helper()
	hex := strings.TrimPrefix(digestOf(config), digestPrefix)
	entry := object{"Config": hex + ".json", "RepoTags": []string{tag}}
	var files []file
	var names []string
	for i, l := range layers {
		name := string(rune('a'+i)) + "/layer.tar"
		files = append(files, file{name: string(rune('a'+i)) + "/"}, file{name: name, body: string(l)})
		names = append(names, name)
	}
	entry["Layers"] = names
	files = append(files, file{name: hex + ".json", body: string(config)}, file{name: "manifest.json", body: string(jsonOf(t, []object{entry}))})
	return tarOf(t, files...)
}

func plainly(_ testing.TB, data []byte) []byte { return data }

// opened opens a store in a directory that the test removes.
func opened(t testing.TB) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "oci")
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s.flush = func(string) error { return nil } // which takes seconds on a busy machine
	t.Cleanup(func() { _ = removeAll(dir) })
	return s
}

func imported(t testing.TB, s *Store, archive []byte, as string) Image {
	t.Helper()
	all, err := s.Import(context.Background(), bytes.NewReader(archive), as)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d images, want 1", len(all))
	}
	return all[0]
}

// read returns a file of an image.
func read(t testing.TB, img Image, name string) string {
	t.Helper()
	root, err := os.OpenRoot(img.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	data, err := root.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func absent(t testing.TB, img Image, name string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(img.Root, name)); !os.IsNotExist(err) {
		t.Errorf("%s is there (%v)", name, err)
	}
}

// leftovers lists what is unfinished in a store.
func leftovers(t testing.TB, s *Store) []string {
	t.Helper()
	var names []string
	entries, err := os.ReadDir(filepath.Join(s.dir, workName))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
