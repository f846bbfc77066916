// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
)

// bringer takes images that the Engine of a runtime has, or can pull, when a sandbox of that runtime asks
// for one by a reference that the server does not know. It is an import as any other: the record
// has its digest, and what a sandbox needs is added. One at a time.
type bringer struct {
	engine  *engine.Engine
	images  *image.Store
	drivers map[string]runtime.Driver
	usual   string // the runtime of what names none
	turn    chan struct{}
}

func newBringer(e *engine.Engine, s *image.Store, drivers map[string]runtime.Driver, usual string) *bringer {
	return &bringer{engine: e, images: s, drivers: drivers, usual: usual, turn: make(chan struct{}, 1)}
}

// bring serves the server's own administrator alone: an Engine reaches what its host does, with its
// credentials.
func (b *bringer) bring(ctx context.Context, c access.Caller, r *engine.CreateRequest) error {
	source, ok := b.drivers[cmp.Or(r.Runtime, b.usual)].(runtime.ImageSource)
	if !ok || r.From != "" || !isReference(r.Image) || !c.May(access.ServerAdmin) || b.known(r.Image) {
		return nil
	}
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.turn }()
	if b.known(r.Image) {
		return nil // another call brought it
	}
	archive, err := source.SaveImage(ctx, r.Image)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	_, err = b.engine.ImportImages(ctx, c, archive, r.Image)
	return err
}

// known reports whether the server has it, or has its own words for why not.
func (b *bringer) known(name string) bool {
	_, err := b.images.Resolve(name)
	return !fault.Is(err, fault.NotFound)
}

// isReference reports whether a name can only be one of a registry's, and not a misspelt one of the catalogue.
func isReference(name string) bool {
	return strings.ContainsAny(name, "/:") && !strings.HasPrefix(name, "sha256:")
}
