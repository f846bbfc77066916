// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/image"
)

// Images is what the engine needs of the images; *image.Store has it. It is
// safe for concurrent use.
type Images interface {
	// Resolve returns the catalogue's entry for a caller's spelling, without looking
	// at the disk. The empty name is the default image.
	Resolve(name string) (image.Entry, error)
	// Ensure returns the image, and builds it if it is missing. The build goes on
	// when ctx ends.
	Ensure(ctx context.Context, name string) (image.Image, error)
	// Find returns the image if it is built, and else fault.NotFound.
	Find(ctx context.Context, name string) (image.Image, error)
	// FindDigest returns exactly the image that a sandbox was made from.
	FindDigest(name, digest string) (image.Image, error)
	List(ctx context.Context) ([]image.Status, error)
}

// Importer is what images have that take those of others; *image.Store has it.
type Importer interface {
	// Import makes images of an archive, see [image.Store.Import].
	Import(ctx context.Context, archive io.Reader, as, project string) ([]image.Status, error)
	// Pull brings an image from its registry, see [image.Store.Pull].
	Pull(ctx context.Context, reference, project string) (image.Status, error)
}

// ImportImages makes images of an archive of others: docker save's, or an OCI layout's. as names
// the image in place of the archive's own name; "" keeps that.
func (e *Engine) ImportImages(ctx context.Context, c access.Caller, archive io.Reader, as string) ([]image.Status, error) {
	var made []image.Status
	err := e.bring(ctx, c, func(ctx context.Context, from Importer) (err error) {
		made, err = from.Import(ctx, archive, as, c.Owner())
		return err
	})
	return made, err
}

// PullImage brings an image of others from its registry, and waits for it. The pull goes on when
// ctx ends; Images shows how far it is.
func (e *Engine) PullImage(ctx context.Context, c access.Caller, reference string) (image.Status, error) {
	var made image.Status
	err := e.bring(ctx, c, func(ctx context.Context, from Importer) (err error) {
		made, err = from.Pull(ctx, reference, c.Owner())
		return err
	})
	return made, err
}

// bring has an administrator bring images of others.
func (e *Engine) bring(ctx context.Context, c access.Caller, do func(context.Context, Importer) error) error {
	if err := e.enterWork(c, access.Admin); err != nil {
		return err
	}
	defer e.group.Leave()
	from, ok := e.images.(Importer)
	if !ok {
		return fault.New(fault.Unsupported, "this server takes no images of others")
	}
	bound, cancel := e.group.Bind(ctx)
	defer cancel()
	err := do(bound, from)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return core.Stopping()
	}
	return err
}

// Images gives every image of the catalogue and how far it is on this machine.
func (e *Engine) Images(ctx context.Context, c access.Caller) ([]image.Status, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.Leave()
	return e.images.List(ctx)
}

// Pools returns what is made ahead of creates.
func (e *Engine) Pools() *prewarm.Pools { return e.pools }

// mayBuild refuses a caller who is no administrator an image that only those have built.
func (e *Engine) mayBuild(ctx context.Context, c access.Caller, entry image.Entry) error {
	if !entry.ByAdmin || c.May(access.Admin) {
		return nil
	}
	if _, err := e.images.Find(ctx, entry.Name); !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.New(fault.NotFound, "the image %q is not built on this server, and only an administrator has it built", entry.Name).
		WithRemedy("ask one to run: sandpit image build %s; or use another image", entry.Name)
}

// BuildImage builds an image, unless it is built, and waits for it. The build
// goes on when ctx ends; Images shows how far it is.
func (e *Engine) BuildImage(ctx context.Context, c access.Caller, name string) (image.Status, error) {
	if err := e.enter(c, access.Admin); err != nil {
		return image.Status{}, err
	}
	defer e.group.Leave()
	entry, err := e.images.Resolve(name)
	if err != nil {
		return image.Status{}, err
	}
	if _, err := e.awaitImage(ctx, entry.Name); err != nil {
		return image.Status{}, err
	}
	all, err := e.images.List(ctx)
	if err != nil {
		return image.Status{}, err
	}
	for _, st := range all {
		if st.Name == entry.Name {
			return st, nil
		}
	}
	return image.Status{}, fault.New(fault.Internal, "the image %q was built and is not listed", entry.Name)
}
