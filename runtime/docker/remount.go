// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// An Engine changes the mounts of no container that there is. A sandbox gets others by a new container, of
// an image of the earlier one's disk.

// remount has the container of an instance that is down mount what spec says, and have its limit of the disk. verb is held.
func (i *Instance) remount(ctx context.Context, spec runtime.Spec) error {
	if err := i.d.thereAre(ctx, spec.Mounts); err != nil {
		return err
	}
	c, err := i.d.engine.InspectContainer(ctx, i.its())
	if err != nil {
		return err
	}
	had, err := mountsOf(c)
	if err != nil {
		return err
	}
	v := i.d.visitOf(c.ID)
	limits, err := i.d.limitable(ctx)
	if err != nil {
		return err
	}
	same := mountsLabel(spec.Mounts) == c.Config.Labels[labelMounts] && diskLabel(limits, spec.Limits) == c.Config.Labels[labelDisk]
	if !same && partsByEngine(c, had) {
		return i.rebuild(ctx, c, spec) // an Engine shows nothing of a container once a directory that it mounts is gone
	}
	if same {
		if err := i.remakeParts(ctx, v, c, spec.Mounts); err != nil {
			return err
		}
	}
	// What is in the way is seen before the disk is copied; under an earlier volume the copy shows it.
	var places []directory // somebody moved away
	for _, m := range spec.Mounts {
		if covered(m.Path, had) {
			continue
		}
		missing, err := v.missing(ctx, "", strings.TrimPrefix(m.Path, "/"))
		if asBlocked(err, new(*mount.Blocked)) {
			return blockedAt(m.Path, "no volume can be mounted")
		}
		if err != nil {
			return err
		}
		if i.d.makes(m, missing) {
			places = append(places, missing...)
		}
	}
	if !same {
		return i.rebuild(ctx, c, spec)
	}
	return v.mkdir(ctx, places)
}

// partsByEngine reports whether the Engine mounts directories of volumes in a container.
func partsByEngine(c engineapi.Inspected, mounts []sandbox.Mount) bool {
	for n, m := range mounts {
		if m.Sub != "" && !hasMount(c, insideVolume(n)) {
			return true
		}
	}
	return false
}

// remakeParts makes the directories of volumes that were removed since they were mounted last.
func (i *Instance) remakeParts(ctx context.Context, v *visit, c engineapi.Inspected, mounts []sandbox.Mount) error {
	if i.d.makesInside() {
		return nil
	}
	gone := partsByEngine(c, mounts)
	for n, m := range mounts {
		if m.Sub == "" || gone {
			continue
		}
		missing, err := v.missing(ctx, insideVolume(n), m.Sub)
		if err != nil {
			return v.notPart(ctx, m, err)
		}
		gone = len(missing) > 0
	}
	if !gone {
		return nil
	}
	other, at, done, err := i.d.visit(ctx, c.Image, mounts)
	if err != nil {
		return err
	}
	defer done()
	return other.makeParts(ctx, mounts, at)
}

// covered reports whether a path is below a volume's place.
func covered(path string, mounts []sandbox.Mount) bool {
	for _, m := range mounts {
		if strings.HasPrefix(path, m.Path+"/") {
			return true
		}
	}
	return false
}

// rebuild puts a container with other volumes, or another limit of the disk, in the place of c, with its disk.
func (i *Instance) rebuild(ctx context.Context, c engineapi.Inspected, spec runtime.Spec) error {
	work, cancel := i.d.finishing(ctx, commitTimeout)
	defer cancel()
	_, err := i.d.engine.CommitContainer(work, c.ID, engineapi.Commit{Repository: movingRepository, Tag: i.d.movingTag(i.id), Labels: map[string]string{
		labelServer: i.d.namespace, labelSnapshot: string(i.id), labelOf: c.Image, labelSandbox: "", labelPolicy: "", labelMounts: "",
	}})
	if err != nil {
		return err
	}
	defer i.d.releaseMoving(work, i.id)
	img, err := i.d.engine.InspectImage(work, i.d.movingRef(i.id))
	if err == nil && len(img.RootFS.Layers) > flattenMost {
		if err = i.d.flatten(work, i.d.movingRef(i.id), i.id); err == nil {
			img, err = i.d.engine.InspectImage(work, i.d.movingRef(i.id))
		}
	}
	if err != nil {
		return err
	}
	if err := i.d.agent.do(work, func() error { return i.d.fillAgent(work, img.ID) }); err != nil {
		return err
	}
	return i.d.withVolumes(work, spec, img.ID, i.streams(), func(made engineapi.Container) error { return i.replace(work, made) })
}

// dropVolume takes a volume from an instance that is down; one that is up has it.
func (i *Instance) dropVolume(ctx context.Context, id sandbox.ID) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if _, err := i.life(); err == nil {
		return fault.New(fault.Conflict, "volume %s is mounted by sandbox %s", id, i.id).WithRemedy("stop the sandbox first")
	} else if !fault.Is(err, fault.State) {
		return err
	}
	if err := i.resolve(ctx); err != nil {
		return err
	}
	if i.its() == "" {
		return i.gone()
	}
	c, err := i.d.engine.InspectContainer(ctx, i.its())
	if err != nil {
		return err
	}
	had, err := mountsOf(c)
	if err != nil {
		return err
	}
	spec := specOf(i.id, c)
	for _, m := range had {
		if m.Volume != id {
			spec.Mounts = append(spec.Mounts, m)
		}
	}
	return i.rebuild(ctx, c, spec)
}

// specOf is what a container was made by, but for its volumes.
func specOf(id sandbox.ID, c engineapi.Inspected) runtime.Spec {
	r := c.HostConfig.Resources
	return runtime.Spec{
		ID: id, Hostname: c.Config.Hostname, Project: c.Config.Labels[labelProject], Image: runtime.Image{Digest: c.Config.Labels[labelImage]},
		Limits: sandbox.Limits{CPU: float64(r.NanoCpus) / 1e9, DiskMB: diskOfLabel(c), MemoryMB: int(r.Memory >> 20), Pids: int(r.PidsLimit - agentThreads)},
	}
}
