// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerdtest_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"sandpit.dev/internal/dockerd"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime/docker/engineapi"
)

// An image that is lent is one like another to who uses the Engine, whether that maps users or not, and
// nobody writes to the files that it has.
func TestAnImageIsLentAndStaysAsItIs(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *dockerdtest.Host{"Docker": dockerdtest.New, "WithMappedUsers": dockerdtest.NewMapped, "Podman": dockerdtest.NewPodman} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, uid := range map[string]int{"of-root": 0, "of-the-user": 1000} {
				path = filepath.Join(root, path)
				if err := errors.Join(os.WriteFile(path, []byte("the image's"), 0o600), os.Chown(path, uid, uid)); err != nil {
					t.Fatal(err)
				}
			}
			h := start(t)
			h.Lend(dockerd.Image{Root: root, Names: []string{"localhost/lent:1", "localhost/also:2"}, Labels: map[string]string{"of": "a-test"}})
			lent(t, h, "localhost/lent:1")
			h.Stop()
			h.Start()
			lent(t, h, "localhost/also:2")
			if b, err := os.ReadFile(filepath.Join(root, "of-root")); err != nil || string(b) != "the image's" {
				t.Errorf("the file that was lent is %q, %v", b, err)
			}
			if list, err := os.ReadDir(root); err != nil || len(list) != 2 {
				t.Errorf("in the directory that was lent are %v, %v", list, err)
			}
		})
	}
}

// lent makes a container of the image, and changes it.
func lent(t *testing.T, h *dockerdtest.Host, name string) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := engineapi.Find(ctx, engineapi.Environment{Host: "unix://" + h.Socket()})
	check(err)
	defer c.Close()
	img, err := c.InspectImage(ctx, name)
	check(err)
	if img.Config.Labels["of"] != "a-test" {
		t.Errorf("its labels are %v", img.Config.Labels)
	}
	id, err := c.CreateContainer(ctx, engineapi.Container{Config: engineapi.Config{Image: img.ID, Cmd: []string{"none"}}, Host: engineapi.HostConfig{NetworkMode: "none"}})
	check(err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"of-root", "new"} {
		check(w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: 4}))
		_, err := io.WriteString(w, "mine")
		check(err)
	}
	check(w.Close())
	check(c.PutArchive(ctx, id, "/", &b))
	r, err := c.ExportContainer(ctx, id)
	check(err)
	defer func() { _ = r.Close() }()
	got := map[string]string{}
	for in := tar.NewReader(r); ; {
		f, err := in.Next()
		if err == io.EOF {
			break
		}
		check(err)
		text, err := io.ReadAll(in)
		check(err)
		got[f.Name] = fmt.Sprintf("%d:%d %s", f.Uid, f.Gid, text)
	}
	for name, want := range map[string]string{"of-root": "0:0 mine", "new": "0:0 mine", "of-the-user": "1000:1000 the image's"} {
		if got[name] != want {
			t.Errorf("in a container %s is %q, want %q", name, got[name], want)
		}
	}
	check(c.RemoveContainer(ctx, id))
}
