// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/disk"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Diff reads both disks whole, and compares them.
func (d *Driver) Diff(ctx context.Context, image runtime.Image, from, to runtime.Point, limit int) (sandbox.Changes, error) {
	was, err := d.treeOf(ctx, image, from)
	if err != nil {
		return sandbox.Changes{}, err
	}
	is := was
	if from != to {
		if is, err = d.treeOf(ctx, image, to); err != nil {
			return sandbox.Changes{}, err
		}
	}
	return disk.Changes(was, is, limit), nil
}

func (d *Driver) treeOf(ctx context.Context, image runtime.Image, p runtime.Point) (*disk.Tree, error) {
	var of string
	var err error
	switch {
	case p.Instance != "":
		i, err := d.instance(ctx, p.Instance)
		if err != nil {
			return nil, err
		}
		return i.readTree(ctx)
	case p.Snapshot != "":
		of, err = d.diskOf(ctx, p.Snapshot, image.Digest)
	default:
		if of, err = d.image(ctx, image); err == nil {
			return d.treeOfBase(ctx, of)
		}
	}
	if err != nil {
		return nil, err
	}
	container, done, err := d.reader(ctx, of)
	if err != nil {
		return nil, err
	}
	defer done()
	return d.readTree(ctx, container)
}

// baseTree is what an image of the server's has. It is kept, of the one that was asked for last:
// reading it takes as long as the image is large.
type baseTree struct {
	image string
	tree  *disk.Tree
}

func (d *Driver) treeOfBase(ctx context.Context, image string) (*disk.Tree, error) {
	d.mu.Lock()
	have := d.base
	d.mu.Unlock()
	if have.image == image {
		return have.tree, nil
	}
	container, done, err := d.reader(ctx, image)
	if err != nil {
		return nil, err
	}
	defer done()
	tree, err := d.readTree(ctx, container)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base = baseTree{image, tree}
	return tree, nil
}

func (d *Driver) readTree(ctx context.Context, container string) (*disk.Tree, error) {
	r, err := d.engine.ExportContainer(ctx, container)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return disk.Read(ctx, r)
}

// readTree reads the instance's disk, to which processes may be writing. Of files that become shorter while the Engine
// reads them no archive is whole: then an image of the disk is read, for which all of it stands still.
func (i *Instance) readTree(ctx context.Context) (*disk.Tree, error) {
	if i.its() == "" {
		return nil, i.gone()
	}
	tree, err := i.d.readTree(ctx, i.its())
	if !disk.IsTorn(err) {
		return tree, err
	}
	i.d.log.Debug("files of a sandbox change while they are read; they are copied first", "sandbox", i.id, "error", err)
	image, done, err := i.copyDisk(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	container, read, err := i.d.reader(ctx, image)
	if err != nil {
		return nil, err
	}
	defer read()
	return i.d.readTree(ctx, container)
}

// copyDisk has an image without a name made of the instance's disk, which is gone after done.
func (i *Instance) copyDisk(ctx context.Context) (image string, done func(), err error) {
	end, err := i.begin(ctx)
	if err != nil {
		return "", nil, err
	}
	defer end()
	work, cancel := i.d.finishing(ctx, commitTimeout)
	defer cancel()
	if err := i.resolve(work); err != nil {
		return "", nil, err
	}
	if i.its() == "" {
		return "", nil, i.gone()
	}
	image, err = i.commit(work, "", "", i.id)
	if err != nil {
		return "", nil, err
	}
	return image, func() {
		work, cancel := i.d.finishing(ctx, undoTimeout)
		defer cancel()
		if err := i.d.engine.RemoveImage(work, image); err != nil && !fault.Is(err, fault.NotFound) {
			i.d.log.Warn("an image that a disk was read of is left behind; the next server removes it", "image", image, "error", err)
		}
	}, nil
}

// reader makes a container that never runs, of which an image's files are read, and those of volumes.
func (d *Driver) reader(ctx context.Context, image string, volumes ...engineapi.Mount) (container string, done func(), err error) {
	work, cancel := d.finishing(ctx, undoTimeout)
	defer cancel()
	container, err = d.engine.CreateContainer(work, engineapi.Container{
		Name: "sandpit-" + d.namespace + "-disk-" + rand.Text(),
		Config: engineapi.Config{Image: image, Cmd: []string{"none"}, Labels: map[string]string{
			labelServer: d.namespace, labelRole: roleDisk, labelOf: image, labelSandbox: "", labelSnapshot: "",
		}},
		Host: engineapi.HostConfig{NetworkMode: "none", CapDrop: []string{"ALL"}, Mounts: volumes},
	})
	if err != nil {
		return "", nil, err
	}
	return container, func() {
		work, cancel := d.finishing(ctx, undoTimeout)
		defer cancel()
		if err := d.removeContainer(work, container); err != nil {
			d.log.Warn("a container that a disk was read of is left behind; the next server removes it", "container", container, "error", err)
		}
		d.removeOld(work)
	}, nil
}

// sweepReaders removes what an earlier server read disks of.
func (d *Driver) sweepReaders(ctx context.Context) error {
	list, err := d.engine.ListContainers(ctx, d.ours(), labelRole+"="+roleDisk)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Labels[labelOf] == "" || c.Labels[labelOf] != c.ImageID {
			continue // of an image that somebody made of one
		}
		if err := d.removeContainer(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// Export writes what a snapshot has changed of its image.
func (d *Driver) Export(ctx context.Context, id sandbox.ID, w io.Writer) error {
	if err := checkSnapshotID(id); err != nil {
		return err
	}
	img, err := d.kept(ctx, id)
	if fault.Is(err, fault.NotFound) && d.hasLayer(id) {
		return d.copyLayer(id, w)
	}
	if err != nil {
		return err
	}
	return d.writeLayer(ctx, img, w)
}

// writeLayer writes the difference of a snapshot's image and the server's that it began with.
func (d *Driver) writeLayer(ctx context.Context, img engineapi.Image, w io.Writer) error {
	base, err := d.baseOf(ctx, img.Config.Labels[labelImage])
	if err != nil {
		return err
	}
	was, err := d.treeOfBase(ctx, base.ID)
	if err != nil {
		return err
	}
	container, done, err := d.reader(ctx, img.ID)
	if err != nil {
		return err
	}
	defer done()
	is, err := d.readTree(ctx, container)
	if err != nil {
		return err
	}
	r, err := d.engine.ExportContainer(ctx, container)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	out := bufio.NewWriterSize(w, 64<<10)
	if err := disk.Between(was, is).Write(ctx, r, out); err != nil {
		return err
	}
	return out.Flush()
}
