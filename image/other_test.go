// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"testing"

	"sandpit.dev/fault"
)

// savedImage is an archive of docker save with an empty layer.
func savedImage(t *testing.T, tag, env string) []byte {
	t.Helper()
	var layer, out bytes.Buffer
	if err := tar.NewWriter(&layer).Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(layer.Bytes())
	w := tar.NewWriter(&out)
	for name, body := range map[string]string{
		"l":             layer.String(),
		"c":             fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{"Env":[%q,"HOME=/root"]},"rootfs":{"diff_ids":["sha256:%s"]}}`, runtime.GOARCH, env, hex.EncodeToString(sum[:])),
		"manifest.json": fmt.Sprintf(`[{"Config":"c","RepoTags":[%q],"Layers":["l"]}]`, tag),
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(body))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestImagesOfOthersAreFoundBesideTheCatalogue(t *testing.T) {
	s := openTest(t)
	ctx := t.Context()
	if _, err := s.Ensure(ctx, "quay.io/a/b:1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an image that is not here: %v", err)
	}
	made, err := s.Import(ctx, bytes.NewReader(savedImage(t, "quay.io/a/b:1", "A=1")), "", "")
	if err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	digest := made[0].Image.Digest
	for name, want := range map[string]string{"quay.io/a/b:1": "quay.io/a/b:1", digest: digest, digest[:7+12]: digest} {
		img, err := s.Ensure(ctx, name)
		if err != nil || img.Digest != digest || img.Name != want || len(img.Env) != 1 || img.Env["A"] != "1" {
			t.Errorf("%s is %+v (%v)", name, img, err)
		}
		if e, err := s.Resolve(name); err != nil || e.Name != want {
			t.Errorf("%s resolves to %+v (%v)", name, e, err)
		}
	}
	// A sandbox keeps the image that it was made with, whatever its name means later.
	if _, err := s.Import(ctx, bytes.NewReader(savedImage(t, "quay.io/a/b:1", "A=2")), "", ""); err != nil {
		t.Fatal(err)
	}
	if img, err := s.Find(ctx, "quay.io/a/b:1"); err != nil || img.Env["A"] != "2" {
		t.Errorf("the name means %+v (%v)", img, err)
	}
	if img, err := s.FindDigest("quay.io/a/b:1", digest); err != nil || img.Env["A"] != "1" {
		t.Errorf("the digest means %+v (%v)", img, err)
	}
	if _, err := s.FindDigest("quay.io/a/b:1", "000000000000"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a digest that is not here: %v", err)
	}
	// The catalogue's names stay what they are.
	if _, err := s.Import(ctx, bytes.NewReader(savedImage(t, "python:latest", "A=3")), "docker.io/library/python:3.12", ""); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Resolve("python:3.12"); err != nil || e.Name != "python" {
		t.Errorf("python:3.12 resolves to %+v (%v)", e, err)
	}
	all, err := s.List(ctx)
	if err != nil || len(all) != len(catalogue())+3 || all[0].Name != "python" {
		t.Errorf("%d images, the first %v (%v)", len(all), all[0].Name, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(ctx, bytes.NewReader(savedImage(t, "x:1", "A=1")), "", ""); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an import after Close: %v", err)
	}
}
