// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi_test

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime/docker/engineapi"
)

// A container's disk becomes an image, with names that are given and taken, and is read as it is.
func TestDisksOfContainers(t *testing.T) {
	h := dockerdtest.New(t)
	ctx := t.Context()
	c := find(t, engineapi.Environment{Host: "unix://" + h.Socket()})
	const name = "sandpit.test/base:1"
	check(t, c.LoadImage(ctx, image(t, name, archive(t, map[string]string{"file": "of the image"}).Bytes())))
	base := must[engineapi.Image](t)(c.InspectImage(ctx, name))
	make := func(image string, labels map[string]string) string {
		t.Helper()
		return must[string](t)(c.CreateContainer(ctx, engineapi.Container{
			Config: engineapi.Config{Image: image, Cmd: []string{"/none"}, Labels: labels}, Host: engineapi.HostConfig{NetworkMode: "none"},
		}))
	}
	id := make(base.ID, map[string]string{"kept": "of the container", "changed": "of the container"})
	check(t, c.PutArchive(ctx, id, "/", archive(t, map[string]string{"more": "put there"})))

	made := must[string](t)(c.CommitContainer(ctx, id, engineapi.Commit{
		Repository: "sandpit.test/disk", Tag: "a", Labels: map[string]string{"changed": "by the caller", "dev.sandpit.test": "disk"},
	}))
	img := must[engineapi.Image](t)(c.InspectImage(ctx, "sandpit.test/disk:a"))
	if l := img.Config.Labels; img.ID != made || img.Parent != base.ID || l["kept"] != "of the container" || l["changed"] != "by the caller" || len(img.RootFS.Layers) != 2 {
		t.Errorf("the image is %+v, of %s", img, base.ID)
	}
	if img.RootFS.Layers[0] != base.RootFS.Layers[0] {
		t.Errorf("its layers are %v, and those of what it is made of %v", img.RootFS.Layers, base.RootFS.Layers)
	}
	_, err := c.CommitContainer(ctx, "none", engineapi.Commit{Repository: "sandpit.test/disk", Tag: "b"})
	wantCode(t, "an image of no container", err, fault.NotFound)
	_, err = c.CommitContainer(ctx, id, engineapi.Commit{Repository: "not a name", Tag: "b"})
	wantCode(t, "an image with a name that is none", err, fault.Unavailable)

	// What a container of that image has is read whole.
	second := make(made, nil)
	files := exported(t, c, second)
	if files["file"] != "of the image" || files["more"] != "put there" {
		t.Errorf("the disk has %q and %q", files["file"], files["more"])
	}
	_, err = c.ExportContainer(ctx, "none")
	wantCode(t, "the disk of no container", err, fault.NotFound)
	ended, end := context.WithCancel(ctx)
	r := must[io.ReadCloser](t)(c.ExportContainer(ended, second))
	end()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("reading on for a caller that went away: %v", err)
	}
	check(t, r.Close())

	list := must[[]engineapi.ListedImage](t)(c.ListImages(ctx, "dev.sandpit.test=disk"))
	if len(list) != 1 || list[0].ID != made || list[0].ParentID != base.ID || !slices.Equal(list[0].RepoTags, []string{"sandpit.test/disk:a"}) || list[0].Labels["changed"] != "by the caller" {
		t.Errorf("listed are %+v", list)
	}
	// The last name of what a container uses stays; others go.
	wantCode(t, "to remove what a container uses", c.RemoveImage(ctx, "sandpit.test/disk:a"), fault.Conflict)
	check(t, c.TagImage(ctx, made, "sandpit.test/other", "b"))
	check(t, c.RemoveImage(ctx, "sandpit.test/disk:a"))
	_, err = c.InspectImage(ctx, "sandpit.test/disk:a")
	wantCode(t, "a name that was taken away", err, fault.NotFound)
	wantCode(t, "to remove it by its last name", c.RemoveImage(ctx, "sandpit.test/other:b"), fault.Conflict)
	check(t, c.RemoveContainer(ctx, second))
	check(t, c.RemoveImage(ctx, "sandpit.test/other:b"))
	_, err = c.InspectImage(ctx, made)
	wantCode(t, "an image without a name", err, fault.NotFound)
	wantCode(t, "a name for what is gone", c.TagImage(ctx, made, "sandpit.test/other", "c"), fault.NotFound)
	wantCode(t, "a name that is none", c.TagImage(ctx, base.ID, "sandpit.test/../other", "c"), fault.Unavailable)
}

// exported reads the regular files of a container.
func exported(t *testing.T, c *engineapi.Client, id string) map[string]string {
	t.Helper()
	r := must[io.ReadCloser](t)(c.ExportContainer(t.Context(), id))
	defer func() { check(t, r.Close()) }()
	files := map[string]string{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		check(t, err)
		var content strings.Builder
		must[int64](t)(io.Copy(&content, archive)) //nolint:gosec // a test's own
		files[h.Name] = content.String()
	}
}
