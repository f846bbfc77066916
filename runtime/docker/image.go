// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
	"sandpit.dev/runtime"
)

var _ runtime.Imager = (*Driver)(nil)

// repository is the name that the server's images have on an Engine; their tags are their digests.
const repository = "localhost/sandpit/image"

// imageRef is the name of an image of the server's, which may have none.
func imageRef(digest string) string { return repository + ":" + strings.TrimPrefix(digest, "sha256:") }

// image returns the id that an image of the server has on the Engine, which gets it if it lacks it.
func (d *Driver) image(ctx context.Context, img runtime.Image) (string, error) {
	hex, ok := strings.CutPrefix(img.Digest, "sha256:")
	if !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", fault.New(fault.Invalid, "the image %q has no digest that the Engine could know it by", img.Name)
	}
	ref := imageRef(img.Digest)
	id, err := d.loaded(ctx, ref, img.Digest)
	if !fault.Is(err, fault.NotFound) {
		return id, err
	}
	l := d.loadOnce(ref, img)
	select {
	case <-l.done:
	case <-ctx.Done():
		return "", fault.Wrap(fault.Unavailable, ctx.Err(), "the Engine at %s is still being sent the image %q, since %v", d.engine.Host(), img.Name, time.Since(l.began).Round(time.Second)).
			WithRemedy("try again in a minute: it goes on meanwhile")
	}
	if l.err != nil {
		return "", l.err
	}
	if id, err = d.loaded(ctx, ref, img.Digest); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the Engine at %s took the image %q and has none of that digest", d.engine.Host(), img.Name)
	}
	return id, nil
}

// RemoveImage removes the Engine's image of this digest. One of another that has its name stays, and one
// that is in use, by whatever container.
func (d *Driver) RemoveImage(ctx context.Context, digest string) error {
	ref := imageRef(digest)
	d.mu.Lock()
	l := d.loads[ref]
	d.mu.Unlock()
	if l != nil { // it would come back
		select {
		case <-l.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err := d.loaded(ctx, ref, digest)
	if err == nil {
		err = d.engine.RemoveImage(ctx, ref)
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// loaded returns the id of an image that says itself that it has this digest: a name can be anybody's.
func (d *Driver) loaded(ctx context.Context, ref, digest string) (string, error) {
	have, err := d.engine.InspectImage(ctx, ref)
	if err != nil {
		return "", err
	}
	if have.Config.Labels[labelImage] != digest {
		return "", fault.New(fault.NotFound, "the Engine's image %s is another", ref)
	}
	return have.ID, nil
}

// loading is an image on its way to the Engine.
type loading struct {
	began time.Time
	done  chan struct{} // closed at its end
	err   error         // then
}

// madeBy is what images say of each of their layers. Podman commits no container of an image that says it of some alone.
const madeBy = "sandpit"

// loadTimeout bounds it.
const loadTimeout = time.Hour

// loadOnce has the image sent, unless it is being sent. It goes on when all who wait for it have gone:
// one that takes longer than a create may would otherwise never get there.
func (d *Driver) loadOnce(ref string, img runtime.Image) *loading {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.loads[ref]; l != nil {
		return l
	}
	l := &loading{began: time.Now(), done: make(chan struct{})}
	d.loads[ref] = l
	d.log.Info("the Engine is sent an image", "image", img.Name, "digest", img.Digest)
	d.workers.Go(func() {
		ctx, cancel := context.WithTimeout(d.running, loadTimeout)
		defer cancel()
		// Another call may have sent it since the Engine was asked.
		if _, err := d.loaded(ctx, ref, img.Digest); fault.Is(err, fault.NotFound) {
			l.err = d.load(ctx, ref, img)
		} else {
			l.err = err
		}
		if l.err != nil {
			d.log.Warn("the Engine did not take an image", "image", img.Name, "error", l.err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.loads, ref)
		close(l.done)
	})
	return l
}

// load sends an image as an archive, as it is written.
func (d *Driver) load(ctx context.Context, ref string, img runtime.Image) error {
	made, err := oci.Save(ctx, oci.Rootfs{Dir: img.Root, Reference: ref, Made: madeBy, Config: oci.Config{Labels: map[string]string{labelImage: img.Digest}}})
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the image %q cannot be read for the Engine", img.Name)
	}
	return d.send(ctx, made, fmt.Sprintf("the image %q", img.Name))
}

// send has the Engine take an archive as it is written.
func (d *Driver) send(ctx context.Context, made *oci.Saving, what string) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := made.Write(ctx, w)
		_ = w.CloseWithError(err)
		written <- err
	}()
	err := d.engine.LoadImage(ctx, r)
	_ = r.CloseWithError(io.ErrClosedPipe) // an Engine that refuses it reads no further
	if failed := <-written; failed != nil && err == nil {
		err = fault.Wrap(fault.Internal, failed, "%s cannot be read for the Engine", what)
	}
	return err
}
