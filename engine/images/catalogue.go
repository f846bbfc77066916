// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"io"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/store"
)

// Importer is what images have that take those of others; *image.Store has it.
type Importer interface {
	// Import makes images of an archive, see [image.Store.Import].
	Import(ctx context.Context, archive io.Reader, as, project string) ([]image.Status, error)
	// Pull brings an image from its registry, see [image.Store.Pull].
	Pull(ctx context.Context, reference, project string) (image.Status, error)
}

// Source is what a catalogue needs of the engine; *engine.Engine has it.
type Source interface {
	Enter(ctx context.Context, c access.Caller, scope access.Scope) (bound context.Context, leave func(), err error)
	Store() store.Store
	ImageStore() core.Images
}

// Catalogue lists and builds the images that sandboxes run on, and brings those of others. It is safe
// for concurrent use.
type Catalogue struct{ engine Source }

// NewCatalogue returns the catalogue of an engine's images.
func NewCatalogue(e Source) *Catalogue { return &Catalogue{e} }

// ImportImages makes images of an archive of others: docker save's, or an OCI layout's. as names
// the image in place of the archive's own name; "" keeps that.
func (k *Catalogue) ImportImages(ctx context.Context, c access.Caller, archive io.Reader, as string) ([]image.Status, error) {
	var made []image.Status
	err := k.bring(ctx, c, func(ctx context.Context, from Importer) (err error) {
		made, err = from.Import(ctx, archive, as, c.Owner())
		return err
	})
	return made, err
}

// PullImage brings an image of others from its registry, and waits for it. The pull goes on when
// ctx ends; Images shows how far it is.
func (k *Catalogue) PullImage(ctx context.Context, c access.Caller, reference string) (image.Status, error) {
	var made image.Status
	err := k.bring(ctx, c, func(ctx context.Context, from Importer) (err error) {
		made, err = from.Pull(ctx, reference, c.Owner())
		return err
	})
	return made, err
}

// bring has an administrator bring images of others.
func (k *Catalogue) bring(ctx context.Context, c access.Caller, do func(context.Context, Importer) error) error {
	bound, leave, err := k.engine.Enter(ctx, c, access.Admin)
	if err != nil {
		return err
	}
	defer leave()
	if err := k.engine.Store().Room(); err != nil {
		return err
	}
	from, ok := k.engine.ImageStore().(Importer)
	if !ok {
		return fault.New(fault.Unsupported, "this server takes no images of others")
	}
	return unlessStopping(ctx, bound, do(bound, from))
}

// unlessStopping is an error, or that the server is stopping where that is why it is one.
func unlessStopping(ctx, bound context.Context, err error) error {
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return context.Cause(bound)
	}
	return err
}

// Images gives every image of the catalogue and how far it is on this machine.
func (k *Catalogue) Images(ctx context.Context, c access.Caller) ([]image.Status, error) {
	_, leave, err := k.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	return k.engine.ImageStore().List(ctx)
}

// HasImage reports whether an image is here, and allowed.
func (k *Catalogue) HasImage(ctx context.Context, c access.Caller, name string) (bool, error) {
	_, leave, err := k.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return false, err
	}
	defer leave()
	_, err = k.engine.ImageStore().Find(ctx, name)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Denied) {
		return false, nil
	}
	return err == nil, err
}

// BuildImage builds an image, unless it is built, and waits for it. The build
// goes on when ctx ends; Images shows how far it is.
func (k *Catalogue) BuildImage(ctx context.Context, c access.Caller, name string) (image.Status, error) {
	bound, leave, err := k.engine.Enter(ctx, c, access.Admin)
	if err != nil {
		return image.Status{}, err
	}
	defer leave()
	images := k.engine.ImageStore()
	entry, err := images.Resolve(name)
	if err != nil {
		return image.Status{}, err
	}
	if _, err = images.Find(ctx, entry.Name); fault.Is(err, fault.NotFound) {
		_, err = images.Ensure(bound, entry.Name)
		err = unlessStopping(ctx, bound, err)
	}
	if err != nil {
		return image.Status{}, err
	}
	all, err := images.List(ctx)
	if err != nil {
		return image.Status{}, err
	}
	if at := slices.IndexFunc(all, func(s image.Status) bool { return s.Name == entry.Name }); at >= 0 {
		return all[at], nil
	}
	return image.Status{}, fault.New(fault.Internal, "the image %q was built and is not listed", entry.Name)
}
