// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerbuild_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/cmd/sandpit/internal/dockerbuild"
)

// sent returns what a directory's archive has, with the targets of links.
func sent(t *testing.T, d *dockerbuild.Directory) []string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b, func(name string) { t.Errorf("%s is left out", name) }); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Linkname != "" {
			h.Name += " -> " + h.Linkname
		}
		all = append(all, h.Name)
	}
}

func TestADirectoryIsSentWithoutWhatItsFileLeavesOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		".dockerignore": "**/*.log\nbuild\n.git\ndeploy\n!build/keep/*\n", "Dockerfile": "FROM a\n", "a": "", "d/b": "", "d/b.log": "", "build/x": "", "build/keep/y": "", ".git/config": "",
		"deploy/Dockerfile": "FROM b\n", "deploy/Dockerfile.dockerignore": "*\n!a\n",
	} {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	open := func(file string, in string) *dockerbuild.Directory {
		d, err := dockerbuild.Open(dir, file, strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	own := open("", "")
	want := []string{".dockerignore", "Dockerfile", "a", "build/keep/y", "d/", "d/b", "link -> " + outside}
	if got := sent(t, own); !slices.Equal(got, want) || own.Dockerfile != "Dockerfile" {
		t.Errorf("%s: %v, want %v", own.Dockerfile, got, want)
	}
	other := open(filepath.Join(dir, "deploy", "Dockerfile"), "")
	want = []string{".dockerignore", "a", "deploy/Dockerfile", "deploy/Dockerfile.dockerignore"}
	if got := sent(t, other); !slices.Equal(got, want) || other.Dockerfile != "deploy/Dockerfile" {
		t.Errorf("%s: %v, want %v", other.Dockerfile, got, want)
	}
	given := open("-", "FROM c\n")
	if got := sent(t, given); got[0] != given.Dockerfile || !strings.HasPrefix(given.Dockerfile, ".dockerfile.") || len(got) != 8 {
		t.Errorf("%s: %v", given.Dockerfile, got)
	}
	for _, file := range []string{filepath.Join(dir, "none"), dir} {
		if _, err := dockerbuild.Open(dir, file, nil); err == nil {
			t.Errorf("%s is taken", file)
		}
	}
}
