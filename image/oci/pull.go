// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
)

// maxPull ends a pull that does not end.
const maxPull = 6 * time.Hour

// maxFailed bounds the pulls whose failure is remembered.
const maxFailed = 32

// pull is one pull that goes on, shared by all who wait for it.
type pull struct {
	ref    Reference
	by     Bringer
	cancel context.CancelFunc
	over   chan struct{}

	layers atomic.Pointer[[]*arriving]

	// Written before over is closed, read after.
	img Image
	err error
}

// arriving is how far a layer is.
type arriving struct {
	digest string
	size   int64
	done   atomic.Int64
	ready  atomic.Bool
}

// PulledLayer is how far a layer is of an image that is pulled.
type PulledLayer struct {
	Digest     string
	Done, Size int64 // bytes, as transported
	Ready      bool  // its files are here
}

// Pulling is a pull that goes on, or one that failed.
type Pulling struct {
	Name   string
	Layers []PulledLayer // the lowest first; none until the manifest is there
	Err    error         // of one that failed
}

// Pull brings an image from its registry, and returns it. Whoever asks for the same one meanwhile shares it. It goes on
// when ctx ends, and ends with Close; layers that were finished are kept for the next try. An image that is
// here costs a question for what its name means now.
func (s *Store) Pull(ctx context.Context, text string) (Image, error) {
	return s.As("").Pull(ctx, text)
}

func (s *Store) pulled(ctx context.Context, ref Reference, b Bringer) (Image, error) {
	p, err := s.start(ctx, ref, b)
	if err != nil {
		return Image{}, err
	}
	select {
	case <-p.over:
		return p.img, p.err
	case <-ctx.Done():
		return Image{}, fault.Wrap(fault.Timeout, context.Cause(ctx), "the image %s is not here yet; the pull goes on", shown(ref.Familiar()))
	}
}

// start joins the pull of ref or begins one.
func (s *Store) start(ctx context.Context, ref Reference, b Bringer) (*pull, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := b.key(ref)
	if p := s.pulls[key]; p != nil {
		return p, nil
	}
	if s.closed {
		return nil, fault.New(fault.Unavailable, "the server is stopping, so it pulls no image").WithRemedy("try again when it runs")
	}
	if b.remote() == nil {
		return nil, fault.New(fault.Unsupported, "this server pulls no images").WithRemedy("bring it with: sandpit image import FILE")
	}
	p := &pull{ref: ref, by: b, over: make(chan struct{})}
	ctx, p.cancel = context.WithTimeout(context.WithoutCancel(ctx), maxPull)
	s.pulls[key] = p
	s.wg.Go(func() {
		defer p.cancel()
		img, err := s.pull(ctx, p)
		err = hostError(err)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pulls, key)
		delete(s.failed, ref.String())
		if err != nil {
			if s.closed {
				err = fault.Wrap(fault.Unavailable, err, "the server is stopping, so the pull was ended").WithRemedy("pull again when it runs; layers that were finished are kept")
			}
			s.log.Warn("an image cannot be pulled", "image", ref.String(), "error", err)
			if len(s.failed) >= maxFailed {
				clear(s.failed)
			}
			s.failed[ref.String()] = err
		}
		p.img, p.err = img, err
		close(p.over)
	})
	return p, nil
}

func (s *Store) pull(ctx context.Context, p *pull) (Image, error) {
	l, err := s.begin()
	if err != nil {
		return Image{}, err
	}
	defer s.ended(l)
	began := time.Now()
	for _, at := range p.by.remote().places(p.ref) {
		var img Image
		if img, err = s.pullFrom(ctx, p, at); err == nil {
			s.log.Info("pulled an image", "image", p.ref.String(), "from", at.host, "digest", img.Digest, "bytes", p.bytes(), "seconds", time.Since(began).Seconds())
			return img, nil
		}
		if ctx.Err() != nil {
			return Image{}, err
		}
		s.log.Info("an image is not to be had from here", "image", p.ref.String(), "from", at.host, "error", err)
	}
	return Image{}, err // of the registry itself, which is the last
}

// pullFrom brings an image from one place.
func (s *Store) pullFrom(ctx context.Context, p *pull, at place) (Image, error) {
	what := p.ref.Digest
	if what == "" {
		what = p.ref.Tag
	}
	from := p.by.remote()
	data, digest, err := from.manifest(ctx, at, what)
	if err != nil {
		return Image{}, err
	}
	d, err := parseDocument(data)
	if err != nil {
		return Image{}, err
	}
	text := func(want descriptor) ([]byte, error) {
		if want.MediaType == ociManifest || want.MediaType == dockerManifest || want.MediaType == ociIndex || want.MediaType == dockerList {
			data, _, err := from.manifest(ctx, at, want.Digest)
			return data, err
		}
		return from.config(ctx, at, want)
	}
	layer := func(want descriptor) (blob, error) { return from.layer(at, want), nil }
	var plan plan
	if d.isIndex() {
		plan, err = descend(d, s.arch, text, layer)
	} else {
		plan, err = planOf(d, digest, s.arch, text, layer)
	}
	if err != nil {
		return Image{}, err
	}
	plan.names = []string{p.ref.String()}
	layers := make([]*arriving, len(plan.layers))
	for i, b := range plan.layers {
		layers[i] = &arriving{digest: b.digest, size: b.size}
	}
	p.layers.Store(&layers)
	return s.install(ctx, plan, p.by, func(layer int, n int64, ready bool) {
		layers[layer].done.Add(n)
		layers[layer].ready.Store(ready)
	})
}

// now returns how far each layer is.
func (p *pull) now() (all []PulledLayer) {
	layers := p.layers.Load()
	if layers == nil {
		return nil
	}
	for _, l := range *layers {
		all = append(all, PulledLayer{Digest: l.digest, Done: min(l.done.Load(), l.size), Size: l.size, Ready: l.ready.Load()})
	}
	return all
}

// bytes returns how many the layers have.
func (p *pull) bytes() int64 {
	_, total := (&Pulling{Layers: p.now()}).Bytes()
	return total
}

// Pulls returns the pulls that go on, and the last that failed.
func (s *Store) Pulls() []Pulling {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Pulling
	for _, key := range slices.Sorted(maps.Keys(s.pulls)) {
		p := s.pulls[key]
		all = append(all, Pulling{Name: p.ref.Familiar(), Layers: p.now()})
	}
	for _, key := range slices.Sorted(maps.Keys(s.failed)) {
		if ref, err := ParseReference(key); err == nil && s.pulls[key] == nil {
			all = append(all, Pulling{Name: ref.Familiar(), Err: s.failed[key]})
		}
	}
	return all
}

// Bytes returns how many are here, and how many there are; both are 0 until the manifest is there.
func (p *Pulling) Bytes() (done, total int64) {
	for _, l := range p.Layers {
		done, total = done+l.Done, total+l.Size
	}
	return done, total
}

// Text says how far a pull is.
func (p *Pulling) Text() string {
	done, total := p.Bytes()
	if total == 0 {
		return "asking the registry"
	}
	return fmt.Sprintf("%.1f of %.1f MB, %d layers", float64(done)/1e6, float64(total)/1e6, len(p.Layers))
}

// Close ends the pulls in progress and waits until they have ended. It may be called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, p := range s.pulls {
		p.cancel()
	}
	s.mu.Unlock()
	s.wg.Wait()
	for _, r := range []*remote{s.remote, s.anonymous} {
		if r != nil {
			r.close()
		}
	}
	return nil
}
