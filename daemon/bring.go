// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/engine"
	"sandpit.dev/engine/images"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// bringer takes images when a sandbox asks for one by a reference that the server does not know: of the Engine of its
// runtime, which has it or pulls it, or of its registry, where the runtime is a cluster. It is an import as any other: the record
// has its digest, and what a sandbox needs is added. One at a time. The default image, where that is such
// a reference, is brought ahead.
type bringer struct {
	imports   *images.Catalogue
	images    *image.Store
	drivers   map[string]runtime.Driver
	onCluster func(runtime string) bool
	usual     string // the runtime of what names none
	turn      chan struct{}
}

func newBringer(e images.Source, s *image.Store, drivers map[string]runtime.Driver, r *Runtimes) *bringer {
	return &bringer{
		imports: images.NewCatalogue(e), images: s, drivers: drivers, onCluster: r.onCluster, usual: r.wanted()[0].Name(), turn: make(chan struct{}, 1),
	}
}

// source returns what has images that the server lacks, for a runtime, or nil. brings is whether they come at all.
func (b *bringer) source(name string) (source runtime.ImageSource, brings bool) {
	source, ok := b.drivers[name].(runtime.ImageSource)
	return source, ok || b.onCluster(name)
}

// bring serves the server's own administrator alone: an Engine reaches what its host does, with its
// credentials.
func (b *bringer) bring(ctx context.Context, c access.Caller, r *engine.CreateRequest) error {
	source, ok := b.source(cmp.Or(r.Runtime, b.usual))
	if !ok || r.From != "" {
		return nil
	}
	if r.Image == "" || r.Image == "default" {
		if ref := b.images.Default(); ref != "" {
			return b.take(ctx, system(), source, ref) // the operator named it, whoever asks
		}
		return nil
	}
	if !isReference(r.Image) || !c.May(access.ServerAdmin) {
		return nil
	}
	return b.take(ctx, c, source, r.Image)
}

// prebuild builds the default image, or pulls it by its reference.
func (b *bringer) prebuild(ctx context.Context) error {
	ref := b.images.Default()
	source, ok := b.source(b.usual)
	if ref == "" || !ok {
		_, err := b.images.Ensure(ctx, "")
		return err
	}
	return b.take(ctx, system(), source, ref)
}

// system is who brings the operator's default.
func system() access.Caller {
	return access.Caller{Project: access.DefaultProject, Actor: bearer.SystemName, Via: "system", Scopes: []access.Scope{access.ServerAdmin}}
}

// turnPatience is how long a call waits for an image that another brings: clients of MCP wait no longer than half a minute.
const turnPatience = 20 * time.Second

// pullPart is how much of the work it is to have the Engine pull an image. The rest is to take it from there.
const pullPart = 0.8

// take imports an image of the Engine's, or pulls it where source is nil, unless it is here.
func (b *bringer) take(ctx context.Context, c access.Caller, source runtime.ImageSource, reference string) error {
	if b.known(reference) {
		return nil
	}
	wait := time.NewTimer(turnPatience)
	defer wait.Stop()
	select {
	case b.turn <- struct{}{}:
	case <-wait.C:
		return fault.New(fault.Unavailable, "the image %s, or another one, is still being brought", sandbox.Clip(reference, 200)).
			WithRemedy("try again in a minute: it goes on meanwhile")
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.turn }()
	if b.known(reference) {
		return nil // another call brought it
	}
	if source == nil {
		_, err := b.imports.PullImage(ctx, c, reference)
		return err
	}
	report, shown, err := b.images.Fetching(reference)
	if err != nil {
		return err
	}
	defer shown()
	report("pull", "", 0, nil)
	archive, err := source.SaveImage(ctx, reference, func(p runtime.ImageProgress) { report("pull", p.String(), p.Part*pullPart, layersOf(p)) })
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	report("import", "", pullPart, nil)
	_, err = b.imports.ImportImages(ctx, c, &counted{r: archive, tell: func(n int64) {
		report("import", fmt.Sprintf("%.1f MB taken from the Engine", float64(n)/1e6), pullPart, nil)
	}}, reference)
	return err
}

// layersOf returns an Engine's words about layers in those of images.
func layersOf(p runtime.ImageProgress) []image.PulledLayer {
	all := make([]image.PulledLayer, len(p.Each))
	for i, l := range p.Each {
		all[i] = image.PulledLayer{Digest: l.ID, Done: l.Done, Size: l.Total, State: image.LayerWaiting}
		switch {
		case l.Ready:
			all[i].State = image.LayerReady
		case l.Here:
			all[i].State = image.LayerUnpacking
		case l.Done > 0:
			all[i].State = image.LayerPulling
		}
	}
	return all
}

// counted tells how many bytes were read, each time that as many more as countEvery were.
type counted struct {
	r       io.Reader
	n, last int64
	tell    func(n int64)
}

const countEvery = 1 << 20

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.n += int64(n); c.n-c.last >= countEvery {
		c.last = c.n
		c.tell(c.n)
	}
	return n, err
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
