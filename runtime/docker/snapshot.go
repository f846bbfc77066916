// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"slices"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// commitTimeout bounds keeping a disk, whatever became of the caller: the Engine copies all that the
// disk holds beside its image.
const commitTimeout = 15 * time.Minute

// Snapshot has the Engine make an image of the container's disk, which stands still meanwhile.
func (d *Driver) Snapshot(ctx context.Context, of, id sandbox.ID) (runtime.Snapshot, error) {
	if err := checkSnapshotID(id); err != nil {
		return runtime.Snapshot{}, err
	}
	i, err := d.instance(ctx, of)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	done, err := d.keep(ctx, id)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer done()
	end, err := i.begin(ctx)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer end()
	work, cancel := d.finishing(ctx, commitTimeout)
	defer cancel()
	if err := i.resolve(work); err != nil {
		return runtime.Snapshot{}, err
	}
	if i.its() == "" {
		return runtime.Snapshot{}, i.gone()
	}
	repository, tag := d.snapshotName(id)
	_, err = i.commit(work, repository, tag, id)
	if err == nil {
		err = ctx.Err()
	}
	var img engineapi.Image
	if err == nil {
		img, err = d.kept(work, id)
	}
	var size int64
	if err == nil {
		size, err = d.sizeOf(work, img)
	}
	if err != nil {
		undo, done := d.finishing(ctx, undoTimeout)
		defer done()
		return runtime.Snapshot{}, d.undoSnapshot(undo, id, err)
	}
	if len(img.RootFS.Layers) > d.depth && d.running.Err() == nil {
		d.workers.Go(func() { d.flattenLater(id) })
	}
	return runtime.Snapshot{SizeBytes: size}, nil
}

// keep reserves the id of a snapshot that is about to be made.
func (d *Driver) keep(ctx context.Context, id sandbox.ID) (done func(), err error) {
	if err := d.clean(ctx); err != nil {
		return nil, err
	}
	taken := fault.New(fault.Exists, "snapshot %s exists", id)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keeping[id] {
		return nil, taken
	}
	d.keeping[id] = true
	done = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.keeping, id)
	}
	d.mu.Unlock()
	_, err = d.kept(ctx, id)
	if fault.Is(err, fault.NotFound) && d.hasLayer(id) {
		err = nil
	}
	d.mu.Lock()
	switch {
	case err == nil:
		err = taken
	case fault.Is(err, fault.NotFound):
		return done, nil
	}
	delete(d.keeping, id)
	return nil, err
}

// commit has an image made of the disk, with a name or without one, and the label of a snapshot. verb is held.
func (i *Instance) commit(ctx context.Context, repository, tag string, id sandbox.ID) (image string, err error) {
	c, err := i.d.engine.InspectContainer(ctx, i.its())
	if err != nil {
		return "", err
	}
	to := engineapi.Commit{Repository: repository, Tag: tag, Labels: map[string]string{
		labelServer: i.d.namespace, labelSnapshot: string(id), labelOf: c.Image, labelSandbox: "", labelPolicy: "", labelMounts: "",
	}}
	if c.State.Running && !c.State.Paused {
		goOn, err := i.freeze(ctx)
		if err != nil {
			return "", err
		}
		defer goOn()
	}
	return i.d.engine.CommitContainer(ctx, c.ID, to)
}

// expectPauses has n more events of a container that was frozen be the driver's own, or fewer if it is negative. Events may come so late that those
// of several pauses are still to come.
func (i *Instance) expectPauses(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pauses = max(0, i.pauses+n)
}

// freeze has the container stand still until goOn, and no stream begin meanwhile. The Engine's own way is not that: Docker copies the
// disk of what goes on where the kernel did not freeze it in time, and waits for ever where a stream begins. What a server that ends
// leaves frozen goes on with the next. verb is held.
func (i *Instance) freeze(ctx context.Context) (goOn func(), err error) {
	if err := i.d.hasGroups(ctx); err != nil {
		return nil, err
	}
	begin, err := i.holdStreams(ctx)
	if err != nil {
		return nil, err
	}
	i.expectPauses(1)
	if err := i.freezing(ctx, func() error { return i.d.engine.PauseContainer(ctx, i.its()) }); err != nil {
		begin()
		i.expectPauses(-1)
		return nil, errors.Join(i.orDown(err), i.thaw(ctx))
	}
	return func() {
		work, cancel := i.d.finishing(ctx, undoTimeout)
		defer cancel()
		err := i.d.engine.ResumeContainer(work, i.its())
		begin()
		if err == nil {
			return
		}
		if err := i.thaw(work); err != nil {
			i.d.log.Error("a sandbox whose disk was copied may stand still; its next start, stop, pause or resume mends it", "sandbox", i.id, "error", err)
		}
	}, nil
}

// thaw has a container go on that may be frozen since the Engine did not answer, unless it is down.
func (i *Instance) thaw(ctx context.Context) error {
	if _, over := i.life(); over != nil {
		return nil //nolint:nilerr // what is down is not frozen
	}
	err := i.resume(ctx)
	if _, over := i.life(); over != nil {
		return nil //nolint:nilerr // as above
	}
	return err
}

// sizeOf is what a snapshot takes beside its image. What was changed from one snapshot to the next
// counts in each.
func (d *Driver) sizeOf(ctx context.Context, img engineapi.Image) (int64, error) {
	base, err := d.baseOf(ctx, img.Config.Labels[labelImage])
	if fault.Is(err, fault.NotFound) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	return max(0, img.Size-base.Size), nil
}

// undoSnapshot removes what was made of a snapshot that failed, and returns why it did.
func (d *Driver) undoSnapshot(ctx context.Context, id sandbox.ID, err error) error {
	if undo := d.RemoveSnapshot(ctx, id); undo != nil {
		d.log.Error("a snapshot that was not made may be left behind", "snapshot", id, "error", undo)
	}
	return err
}

// Snapshots lists the images of this server that are snapshots.
func (d *Driver) Snapshots(ctx context.Context) ([]sandbox.ID, error) {
	list, err := d.engine.ListImages(ctx, d.ours(), labelSnapshot)
	if err != nil {
		return nil, err
	}
	var out []sandbox.ID
	for _, img := range list {
		id := sandbox.ID(img.Labels[labelSnapshot])
		if sandbox.ValidID(string(id)) && slices.Contains(img.RepoTags, d.snapshotRef(id)) {
			out = append(out, id)
		}
	}
	layers, err := d.listLayers()
	if err != nil {
		return nil, err
	}
	out = append(out, layers...)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// RemoveSnapshot removes the image of a snapshot, or has it removed with the last container that uses it.
func (d *Driver) RemoveSnapshot(ctx context.Context, id sandbox.ID) error {
	if err := checkSnapshotID(id); err != nil {
		return err
	}
	// Nobody makes an image of it meanwhile.
	if err := d.joining.lock(ctx); err != nil {
		return err
	}
	defer d.joining.unlock()
	if err := d.removeLayer(id); err != nil {
		return err
	}
	img, err := d.kept(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.release(ctx, img.ID, d.snapshotRef(id))
}

// Rollback puts a new container in the place of that of an instance that is down: of the snapshot's
// image, or of the sandbox's.
func (d *Driver) Rollback(ctx context.Context, of, from sandbox.ID, l sandbox.Limits) error {
	i, err := d.instance(ctx, of)
	if err != nil {
		return err
	}
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	switch _, err := i.life(); {
	case err == nil:
		return fault.New(fault.State, "sandbox %s is running", of).WithRemedy("stop it first")
	case !fault.Is(err, fault.State):
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	work, cancel := d.finishing(ctx, undoTimeout)
	defer cancel()
	if err := i.resolve(work); err != nil {
		return err
	}
	if i.its() == "" {
		return i.gone()
	}
	c, err := d.engine.InspectContainer(work, i.its())
	if err != nil {
		return err
	}
	spec := specOf(of, c)
	spec.Limits = l
	if spec.Mounts, err = mountsOf(c); err != nil {
		return err
	}
	base, err := d.baseOf(work, spec.Image.Digest)
	if err != nil && (from == "" || !fault.Is(err, fault.NotFound)) {
		return err
	}
	image := base.ID
	if from != "" {
		if image, err = d.diskOf(work, from, spec.Image.Digest); err != nil {
			return err
		}
	}
	if err := d.agent.do(work, func() error { return d.fillAgent(work, image) }); err != nil {
		return err
	}
	return d.withVolumes(work, spec, image, i.streams(), func(made engineapi.Container) error { return i.replace(work, made) })
}

func checkSnapshotID(id sandbox.ID) error {
	if sandbox.ValidID(string(id)) {
		return nil
	}
	return fault.InvalidField("id", "%q is not a valid snapshot id", sandbox.Clip(string(id), 40))
}

// instance returns one that exists, up or down.
func (d *Driver) instance(ctx context.Context, id sandbox.ID) (*Instance, error) {
	i, err := d.Open(ctx, runtime.Handle{ID: id})
	if err != nil {
		return nil, err
	}
	return i.(*Instance), nil //nolint:forcetypeassert // Open returns no other
}
