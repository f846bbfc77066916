// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// publishPatience bounds putting an image into the registry.
const publishPatience = time.Hour

// publishing is an image on its way to the registry.
type publishing struct {
	done      chan struct{} // closed at its end
	reference string        // then, with its digest
	err       error
}

// imageOf returns the reference by which nodes get an image of the server's. The first sandbox of it has it put into the registry.
func (d *Driver) imageOf(ctx context.Context, img runtime.Image) (string, error) {
	hex, ok := strings.CutPrefix(img.Digest, "sha256:")
	if !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", fault.New(fault.Invalid, "the image %q has no digest that nodes could know it by", sandbox.Clip(img.Name, 80))
	}
	reference := ImageReference(d.o.Images, img.Digest)
	if d.o.Publisher == nil {
		return reference, nil
	}
	return d.published(ctx, reference, img.Name, func(ctx context.Context) (string, error) {
		return d.o.Publisher.Publish(ctx, img.Root, reference, map[string]string{annotationImage: img.Digest})
	})
}

// agentImage returns the reference by which nodes get the agent.
func (d *Driver) agentImage(ctx context.Context) (string, error) {
	if d.o.Publisher == nil {
		return d.agent, nil
	}
	return d.published(ctx, d.agent, "the agent", func(ctx context.Context) (digest string, err error) {
		dir, err := os.MkdirTemp("", "sandpit-agent-")
		if err != nil {
			return "", fault.Wrap(fault.Internal, err, "an image with the agent cannot be made")
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if err := os.WriteFile(filepath.Join(dir, programName), d.o.Agent, 0o755); err != nil { //nolint:gosec // it is a program
			return "", fault.Wrap(fault.Internal, err, "an image with the agent cannot be made")
		}
		return d.o.Publisher.Publish(ctx, dir, d.agent, nil)
	})
}

// published has an image put into the registry, once for all who wait for it, and returns its reference with its digest. It goes on
// when they have gone: one that takes longer than a create may would otherwise never get there.
func (d *Driver) published(ctx context.Context, reference, what string, publish func(context.Context) (string, error)) (string, error) {
	d.mu.Lock()
	p := d.publishes[reference]
	if p == nil && d.running.Err() != nil {
		d.mu.Unlock()
		return "", errClosed()
	}
	if p == nil {
		p = &publishing{done: make(chan struct{})}
		d.publishes[reference] = p
		d.log.Info("an image is put into the registry, where it is not there yet", "image", what, "reference", reference)
		d.workers.Go(func() {
			limit, cancel := context.WithTimeout(d.running, publishPatience)
			defer cancel()
			digest, err := publish(limit)
			if err != nil {
				d.log.Warn("an image was not put into the registry", "image", what, "reference", reference, "error", err)
				d.mu.Lock()
				delete(d.publishes, reference) // the next sandbox tries again
				d.mu.Unlock()
			}
			p.reference, p.err = reference+"@"+digest, err
			close(p.done)
		})
	}
	d.mu.Unlock()
	select {
	case <-p.done:
		return p.reference, p.err
	case <-ctx.Done():
		return "", fault.Wrap(fault.Unavailable, context.Cause(ctx), "%s is still being put into the registry as %s", what, reference).
			WithRemedy("try again in a minute: it goes on meanwhile")
	}
}
