// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"slices"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

var _ runtime.Volumer = (*Driver)(nil)

// engineVolume is what people see of a volume. One that is ours has it, and the labels.
func (d *Driver) engineVolume(id sandbox.ID) string {
	return "sandpit-" + d.namespace + "-volume-" + string(id)
}

// isOurs reports whether a volume of the Engine's is one of this server. One with options may be any
// directory of the host.
func (d *Driver) isOurs(v engineapi.Volume, id sandbox.ID) bool {
	return v.Labels[labelServer] == d.namespace && v.Labels[labelVolume] == string(id) && v.Name == d.engineVolume(id) && v.Driver == "local" && len(v.Options) == 0
}

// volume returns the Engine's volume of an id, if that is ours.
func (d *Driver) volume(ctx context.Context, id sandbox.ID) (engineapi.Volume, error) {
	v, err := d.engine.InspectVolume(ctx, d.engineVolume(id))
	if err == nil && !d.isOurs(v, id) {
		err = fault.New(fault.NotFound, "the Engine's volume %s is another", v.Name)
	}
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(fault.NotFound, err, "volume %s is not kept by the Engine at %s", id, d.engine.Host())
	}
	return v, err
}

// CreateVolume has the Engine make a volume. It is the Engine's root's until the first sandbox mounts it.
func (d *Driver) CreateVolume(ctx context.Context, id sandbox.ID, limit int64) error {
	if err := checkVolumeID(id); err != nil {
		return err
	}
	if limit > 0 {
		return fault.New(fault.Unsupported, "the docker runtime sets no limit to the Engine's volumes").WithRemedy("make the volume without a size, or use the native runtime")
	}
	if err := d.clean(ctx); err != nil {
		return err
	}
	d.volumes.Lock()
	defer d.volumes.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	work, cancel := d.finishing(ctx, undoTimeout)
	defer cancel()
	v, err := d.engine.InspectVolume(work, d.engineVolume(id))
	if err == nil {
		return d.taken(v, id)
	}
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	if err := d.fresh.WriteFile(string(id), nil, 0o600); err != nil {
		return fault.Wrap(fault.Internal, err, "volume %s cannot be noted", id)
	}
	made := rand.Text()
	v, err = d.engine.CreateVolume(work, d.engineVolume(id), map[string]string{labelServer: d.namespace, labelVolume: string(id), labelMade: made})
	if err == nil && v.Labels[labelMade] != made { // somebody made it since: an Engine returns one that exists
		return errors.Join(d.taken(v, id), d.unfresh(id))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		undoing, done := d.finishing(ctx, undoTimeout)
		defer done()
		if undo := d.removeVolume(undoing, id); undo != nil {
			d.log.Error("a volume that was not made may be left behind", "volume", id, "error", undo)
		}
	}
	return err
}

// taken says that there is a volume of this name already.
func (d *Driver) taken(v engineapi.Volume, id sandbox.ID) error {
	if d.isOurs(v, id) {
		return fault.New(fault.Exists, "volume %s exists", id)
	}
	return fault.New(fault.Conflict, "the Engine has a volume %s, which is none of this server's", v.Name).WithRemedy("remove it: docker volume rm %s", v.Name)
}

// RemoveVolume removes a volume that no container has that runs. Containers that are down are made anew
// without it: an Engine removes no volume of a container that there is.
func (d *Driver) RemoveVolume(ctx context.Context, id sandbox.ID) error {
	if err := checkVolumeID(id); err != nil {
		return err
	}
	for try := 0; ; try++ {
		if _, err := d.volume(ctx, id); fault.Is(err, fault.NotFound) {
			return d.unfresh(id)
		} else if err != nil {
			return err
		}
		if err := d.detach(ctx, id); err != nil {
			return err
		}
		err := d.removeUnused(ctx, id)
		if !fault.Is(err, fault.Conflict) || try == 2 { // a sandbox was made with it, or stopped, meanwhile
			return err
		}
	}
}

func (d *Driver) removeUnused(ctx context.Context, id sandbox.ID) error {
	d.volumes.Lock() // against who is about to mount it
	defer d.volumes.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.removeVolume(ctx, id)
}

// removeVolume is RemoveVolume of one that nothing mounts. volumes is held.
func (d *Driver) removeVolume(ctx context.Context, id sandbox.ID) error {
	_, err := d.volume(ctx, id)
	if err == nil {
		err = d.engine.RemoveVolume(ctx, d.engineVolume(id))
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return d.unfresh(id)
}

// detach has containers of this server that are down made anew without a volume.
func (d *Driver) detach(ctx context.Context, id sandbox.ID) error {
	users, err := d.engine.ListUsers(ctx, d.engineVolume(id))
	if err != nil || len(users) == 0 {
		return err
	}
	ours, err := d.find(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		n := slices.IndexFunc(ours, func(f found) bool { return f.container == u.ID })
		if n < 0 {
			return fault.New(fault.Conflict, "volume %s is mounted by the container %s of the Engine, which is no sandbox of this server", id, sandbox.Clip(nameOf(u), 100)).
				WithRemedy("remove that container: docker rm")
		}
		i, err := d.instance(ctx, ours[n].id)
		if err == nil {
			err = i.dropVolume(ctx, id)
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

func nameOf(c engineapi.Listed) string {
	if len(c.Names) == 0 {
		return c.ID
	}
	return c.Names[0]
}

// VolumeUsage says that an Engine does not count: it walks through all volumes that it has.
func (d *Driver) VolumeUsage(ctx context.Context, id sandbox.ID) (int64, error) {
	if err := checkVolumeID(id); err != nil {
		return 0, err
	}
	if _, err := d.volume(ctx, id); err != nil {
		return 0, err
	}
	return -1, nil
}

// Volumes lists the Engine's that are this server's.
func (d *Driver) Volumes(ctx context.Context) ([]sandbox.ID, error) {
	list, err := d.engine.ListVolumes(ctx, d.ours(), labelVolume)
	if err != nil {
		return nil, err
	}
	var out []sandbox.ID
	for _, v := range list {
		if id := sandbox.ID(v.Labels[labelVolume]); sandbox.ValidID(string(id)) && d.isOurs(v, id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out, nil
}

// sweepVolumes forgets volumes that were about to be made or removed when an earlier server ended.
func (d *Driver) sweepVolumes(ctx context.Context) error {
	entries, err := fs.ReadDir(d.fresh.FS(), ".")
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the directory of the docker runtime cannot be read")
	}
	for _, e := range entries {
		id := sandbox.ID(e.Name())
		if sandbox.ValidID(e.Name()) {
			if _, err := d.volume(ctx, id); !fault.Is(err, fault.NotFound) {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := d.unfresh(id); err != nil {
			return err
		}
	}
	return nil
}

// isFresh reports whether no sandbox has had a volume: it is not the sandbox's user's yet.
func (d *Driver) isFresh(id sandbox.ID) bool {
	_, err := d.fresh.Lstat(string(id))
	return err == nil
}

func (d *Driver) unfresh(id sandbox.ID) error {
	if err := d.fresh.Remove(string(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Internal, err, "what is noted of volume %s cannot be removed", id)
	}
	return nil
}

func checkVolumeID(id sandbox.ID) error {
	if sandbox.ValidID(string(id)) {
		return nil
	}
	return fault.InvalidField("id", "%q is not a valid volume id", sandbox.Clip(string(id), 40))
}
