// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// disks are what a new sandbox begins with beside its image.
type disks struct {
	snap    *sandbox.Snapshot // whose disk its own is a copy of; nil: an empty one
	mounts  []sandbox.Mount
	release func() // lets go of the snapshot; never nil
}

// from is the snapshot's id; zero where there is none.
func (d *disks) from() sandbox.ID {
	if d.snap == nil {
		return ""
	}
	return d.snap.ID
}

// disks finds the snapshot that a create asks for, if it does, and holds it. It
// fills in what the request leaves to it, and gives the image's entry.
func (e *Engine) disks(ctx context.Context, project string, r *CreateRequest) (*disks, image.Entry, error) {
	if r.Later != nil {
		if r.From != "" {
			return nil, image.Entry{}, fault.New(fault.Internal, "a create of the snapshot %s whose image is made first", sandbox.Clip(r.From, 80))
		}
		return &disks{release: func() {}}, image.Entry{}, nil
	}
	if r.From == "" {
		entry, err := e.images.Resolve(r.Image)
		return &disks{release: func() {}}, entry, err
	}
	snap, release, err := e.snapshots.Hold(ctx, project, "", r.From)
	if err != nil {
		return nil, image.Entry{}, err
	}
	if err := e.agree(r, snap); err != nil {
		release()
		return nil, image.Entry{}, err
	}
	r.Image, r.Runtime = snap.Image, snap.Runtime
	r.Limits = r.Limits.Or(snap.Limits)
	if r.Env == nil {
		r.Env = snap.Env
	}
	if r.had = snap.Account; r.Account == nil {
		r.Account = &r.had
	}
	entry, err := e.images.Resolve(snap.Image)
	if err != nil {
		entry = image.Entry{Name: snap.Image} // who looks for the build says what is wrong
	}
	return &disks{snap: snap, release: release}, entry, nil
}

// agree refuses a request for something else than the snapshot is of.
func (e *Engine) agree(r *CreateRequest, snap *sandbox.Snapshot) error {
	if r.Image != "" && r.Image != snap.Image {
		entry, err := e.images.Resolve(r.Image)
		if err != nil {
			return err
		}
		if entry.Name != snap.Image {
			return fault.InvalidField("image", "%q is not the image of the snapshot %s, which is %s", sandbox.Clip(r.Image, 80), snap.ID, snap.Image).
				WithRemedy("leave the image out")
		}
	}
	if r.Runtime != "" && r.Runtime != snap.Runtime {
		return fault.InvalidField("runtime", "%q does not keep the snapshot %s, %s does", sandbox.Clip(r.Runtime, 40), snap.ID, snap.Runtime).
			WithRemedy("leave the runtime out")
	}
	return nil
}

// imageOf returns the image of a new sandbox: for a snapshot exactly the one that it was
// made of, else the newest, which is built if it has to be. It is one that the operator allows.
func (e *Engine) imageOf(ctx context.Context, c access.Caller, entry image.Entry, r *CreateRequest, d *disks) (image.Image, error) {
	if !e.builds(c) { // an image may begin with one that nobody else may have
		if err := e.settings.Load().Images.Admit(entry, r.Image); err != nil {
			return image.Image{}, err
		}
	}
	if d.snap != nil {
		return e.imageKept(d.snap.Image, d.snap.ImageDigest)
	}
	if err := e.mayBuild(ctx, c, entry); err != nil {
		return image.Image{}, err
	}
	img, err := e.awaitImage(ctx, entry.Name)
	if err == nil {
		err = e.settings.Load().Images.Fit(r.Image, img, r.ImageExact)
	}
	return img, err
}

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
