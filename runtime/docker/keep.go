// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Names of images that are disks. An Engine gives a name to one image alone, and an image that somebody
// makes of one of ours has our labels, but not the name: what is ours has both. A snapshot that is
// deleted while containers use it gets a name that says so, and is removed with the last.
const (
	snapshotRepository = "localhost/sandpit/snapshot"
	oldRepository      = "localhost/sandpit/old"
)

// snapshotName is that of a snapshot's image.
func (d *Driver) snapshotName(id sandbox.ID) (repository, tag string) {
	return snapshotRepository, d.namespace + "-" + string(id)
}

func (d *Driver) snapshotRef(id sandbox.ID) string {
	repository, tag := d.snapshotName(id)
	return repository + ":" + tag
}

// kept returns the image of a snapshot of this server.
func (d *Driver) kept(ctx context.Context, id sandbox.ID) (engineapi.Image, error) {
	return d.keptAs(ctx, d.snapshotRef(id), id)
}

// keptAs returns the image of this server that has a name and the label of a snapshot.
func (d *Driver) keptAs(ctx context.Context, ref string, id sandbox.ID) (engineapi.Image, error) {
	img, err := d.engine.InspectImage(ctx, ref)
	if err == nil && (img.Config.Labels[labelServer] != d.namespace || img.Config.Labels[labelSnapshot] != string(id)) {
		err = fault.New(fault.NotFound, "the Engine's image %s is another", ref)
	}
	if fault.Is(err, fault.NotFound) {
		return engineapi.Image{}, fault.Wrap(fault.NotFound, err, "snapshot %s is not kept by the Engine at %s", id, d.engine.Host())
	}
	return img, err
}

// baseOf returns the server's image of a digest, as the Engine has it.
func (d *Driver) baseOf(ctx context.Context, digest string) (engineapi.Image, error) {
	img, err := d.engine.InspectImage(ctx, imageRef(digest))
	if err == nil && img.Config.Labels[labelImage] != digest {
		err = fault.New(fault.NotFound, "the Engine's image %s is another", imageRef(digest))
	}
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(fault.NotFound, err, "the Engine at %s has the image %s no longer", d.engine.Host(), sandbox.Clip(digest, 80)).
			WithRemedy("make a sandbox of that image: the Engine gets it then")
	}
	return img, err
}

// release takes an image's name away, and has it removed with the last container that uses it.
func (d *Driver) release(ctx context.Context, id, ref string) error {
	err := d.engine.RemoveImage(ctx, ref)
	if fault.Is(err, fault.Conflict) {
		d.mu.Lock()
		d.someOld = true
		d.mu.Unlock()
		if err = d.engine.TagImage(ctx, id, oldRepository, d.namespace+"-"+strings.ToLower(rand.Text())); err == nil && ref != id {
			err = d.engine.RemoveImage(ctx, ref)
		}
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// removeOld removes images that were released and that nothing uses any more. What fails is tried again. One looks at a time: what goes
// while another looks may be the last that used an image which that found in use.
func (d *Driver) removeOld(ctx context.Context) {
	if d.removing.lock(ctx) != nil {
		return // the next looks
	}
	defer d.removing.unlock()
	d.mu.Lock()
	some := d.someOld
	d.someOld = false
	d.mu.Unlock()
	if !some {
		return
	}
	left, err := d.removeReleased(ctx)
	if err != nil {
		d.log.Warn("images of snapshots that were deleted are not removed yet", "error", err)
	}
	if left || err != nil {
		d.mu.Lock()
		d.someOld = true
		d.mu.Unlock()
	}
}

// removeReleased reports whether some are left that are in use.
func (d *Driver) removeReleased(ctx context.Context) (left bool, err error) {
	list, err := d.engine.ListImages(ctx, d.ours(), labelSnapshot)
	if err != nil {
		return true, err
	}
	for _, img := range list {
		for _, ref := range img.RepoTags {
			if !strings.HasPrefix(ref, oldRepository+":"+d.namespace+"-") {
				continue
			}
			switch err := d.engine.RemoveImage(ctx, ref); {
			case fault.Is(err, fault.Conflict):
				left = true
			case err != nil && !fault.Is(err, fault.NotFound):
				return true, err
			}
		}
	}
	return left, nil
}

// sweepImages removes what a server that ended was about to make a container of, and what an Engine that
// ended left half made: an image without its name. Such a one says itself what it was committed of; one that
// somebody made of ours was committed of that.
func (d *Driver) sweepImages(ctx context.Context) error {
	list, err := d.engine.ListImages(ctx, d.ours(), labelSnapshot)
	if err != nil {
		return err
	}
	for _, img := range list {
		if ref := d.movingRef(sandbox.ID(img.Labels[labelSnapshot])); slices.Contains(img.RepoTags, ref) {
			if err := d.release(ctx, img.ID, ref); err != nil {
				return err
			}
			continue
		}
		if len(named(img.RepoTags)) > 0 || img.ParentID == "" || img.ParentID != img.Labels[labelOf] {
			continue
		}
		if err := d.engine.RemoveImage(ctx, img.ID); err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	d.mu.Lock()
	d.someOld = true
	d.mu.Unlock()
	d.removeOld(ctx)
	return nil
}

// named returns an image's names: that it has none is written as <none>:<none>.
func named(tags []string) []string {
	return slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return t == "<none>:<none>" })
}
