// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"io"

	"sandpit.dev/fault"
	"sandpit.dev/image"
)

// Images is two images that are there already: python, which is the default, and node.
type Images struct{}

// Resolve finds an image by its name or another name of it.
func (Images) Resolve(name string) (image.Entry, error) {
	switch name {
	case "", "python", "python-3.12", "mcpgateway/sandbox-python:3.12":
		return image.Entry{Name: "python", Title: "Python", Aliases: []string{"python-3.12"}}, nil
	case "node":
		return image.Entry{Name: "node"}, nil
	}
	return image.Entry{}, fault.New(fault.NotFound, "there is no image %q", name).WithRemedy("use one of: python, node")
}

// Find returns what Ensure does: all are built.
func (i Images) Find(ctx context.Context, name string) (image.Image, error) {
	return i.Ensure(ctx, name)
}

// Ensure returns an image whose files are the host's.
func (i Images) Ensure(ctx context.Context, name string) (image.Image, error) {
	e, err := i.Resolve(name)
	if err != nil {
		return image.Image{}, err
	}
	return image.Image{Name: e.Name, Digest: "sha256:" + e.Name, Root: "/", Versions: map[string]string{e.Name: "3.13.5"}}, ctx.Err()
}

// FindDigest finds an image by its name, whatever its digest.
func (i Images) FindDigest(name, _ string) (image.Image, error) {
	return i.Ensure(context.Background(), name)
}

// List lists python alone.
func (i Images) List(ctx context.Context) ([]image.Status, error) {
	img, err := i.Ensure(ctx, "python")
	if err != nil {
		return nil, err
	}
	e, err := i.Resolve("python")
	return []image.Status{{Entry: e, Default: true, Allowed: true, State: image.Ready, Image: img}}, err
}

// Pull brings debian:12-slim, which then is python, and no other image.
func (i Images) Pull(ctx context.Context, reference, _ string) (image.Status, error) {
	if reference != "debian:12-slim" {
		return image.Status{}, fault.New(fault.NotFound, "the registry has no %q", reference)
	}
	all, err := i.List(ctx)
	if err != nil {
		return image.Status{}, err
	}
	return all[0], nil
}

// Import takes any bytes for an archive of python.
func (i Images) Import(ctx context.Context, archive io.Reader, _, _ string) ([]image.Status, error) {
	if _, err := io.Copy(io.Discard, archive); err != nil {
		return nil, err
	}
	return i.List(ctx)
}
