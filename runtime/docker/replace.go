// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// replace has a new container take the place of the instance's, which is down: all or nothing, also
// where the server ends on its way. The names say at any time which of the two it is: see rank.
// verb is held.
func (i *Instance) replace(ctx context.Context, made engineapi.Container) error {
	if err := i.resolve(ctx); err != nil {
		return err
	}
	old, name := i.its(), made.Name
	made.Name = name + suffixNext
	if err := i.d.removeSpare(ctx, i.id, made.Name); err != nil {
		return err
	}
	next, err := i.d.engine.CreateContainer(ctx, made)
	if fault.Is(err, fault.Conflict) {
		return fault.Wrap(fault.Conflict, err, "another container is called %s", made.Name).WithRemedy("rename or remove it: docker rename, docker rm")
	}
	if err != nil {
		i.unsure = true
		return err
	}
	if err := i.swap(ctx, old, next, name); err != nil {
		i.unsure = true // the Engine may have done what it did not answer
		undo, done := i.d.finishing(ctx, undoTimeout)
		defer done()
		return errors.Join(err, i.d.engine.RemoveContainer(undo, next), i.resolve(undo))
	}
	i.mu.Lock()
	i.container, i.drifted = next, false
	i.mu.Unlock()
	i.mark(stoppedFile) // the new one never ran, and did not end by itself
	if err := i.d.removeContainer(ctx, old); err != nil {
		i.d.log.Warn("a sandbox's earlier container is left behind; the next server removes it", "sandbox", i.id, "container", old, "error", err)
	}
	i.d.removeOld(ctx)
	return nil
}

// swap changes the names. When it fails they may be half changed.
func (i *Instance) swap(ctx context.Context, old, next, name string) error {
	if err := i.d.removeSpare(ctx, i.id, name+suffixOld); err != nil {
		return err
	}
	if err := i.d.engine.RenameContainer(ctx, old, name+suffixOld); err != nil {
		return err
	}
	return i.d.engine.RenameContainer(ctx, next, name)
}

// removeSpare removes a container that an earlier try left by a name. Another's stays.
func (d *Driver) removeSpare(ctx context.Context, id sandbox.ID, name string) error {
	c, err := d.engine.InspectContainer(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	l := c.Config.Labels
	if l[labelServer] != d.namespace || l[labelSandbox] != string(id) || l[labelOf] != c.Image {
		return nil
	}
	return d.removeContainer(ctx, c.ID)
}

// sweepReplaced finishes what was begun, of all sandboxes or of those with labels: of two containers of a
// sandbox one goes.
func (d *Driver) sweepReplaced(ctx context.Context, labels ...string) error {
	list, err := d.find(ctx, labels...)
	if err != nil {
		return err
	}
	its := map[sandbox.ID]string{}
	for _, f := range list {
		its[f.id] = f.container
	}
	all, err := d.engine.ListContainers(ctx, append(labels, d.ours())...)
	if err != nil {
		return err
	}
	for _, c := range all {
		id := sandbox.ID(c.Labels[labelSandbox])
		if its[id] == "" || c.Labels[labelOf] != c.ImageID || len(c.Names) != 1 {
			continue
		}
		name := strings.TrimPrefix(c.Names[0], "/")
		if name != d.containerName(id)+suffixOld && name != d.containerName(id)+suffixNext {
			continue
		}
		if its[id] == c.ID {
			err = d.engine.RenameContainer(ctx, c.ID, d.containerName(id))
		} else {
			err = d.removeContainer(ctx, c.ID)
		}
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}
