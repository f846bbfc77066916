// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/mount"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// insideVolumes is where volumes are in a container until the server has put parts of them in their
// places, and in the one in which places are made.
const insideVolumes = insideDir + "/volumes"

func insideVolume(n int) string { return insideVolumes + "/" + strconv.Itoa(n) }

// checkMounts refuses volumes that no container can have.
func (d *Driver) checkMounts(mounts []sandbox.Mount) error {
	if len(mounts) == 0 {
		return nil
	}
	if err := sandbox.CheckMounts(mounts); err != nil {
		return err
	}
	for n, m := range mounts {
		if m.Path == insideDir || strings.HasPrefix(m.Path, insideDir+"/") {
			return fault.InvalidField("mounts["+strconv.Itoa(n)+"].path", "%q is in %s, which is the agent's", sandbox.Clip(m.Path, 80), insideDir).
				WithRemedy("choose a directory of its own, for instance /mnt/data")
		}
		if m.Sub != "" {
			if err := d.mountsParts(); err != nil {
				return err
			}
		}
	}
	return nil
}

// mountsParts says why no directory of a volume can be mounted, and is nil where it can: by the Engine,
// or by the server, which enters containers as it does for their networks.
func (d *Driver) mountsParts() error {
	if d.engine.MountsParts() {
		return nil
	}
	if d.enters() != nil && d.engine.Podman() {
		return fault.New(fault.Unsupported, "Podman at %s mounts no directories of volumes for who speaks Docker's API, and the server cannot do it for it: %s", d.engine.Host(), fault.As(d.enters()).Message).
			WithRemedy("mount the whole volume, or %s", fault.As(d.enters()).Remedy)
	}
	if d.enters() != nil {
		return fault.New(fault.Unsupported, "the Engine at %s mounts no directories of volumes, as those that speak version 1.45 of the API do, and the server cannot do it for it: %s", d.engine.Host(), fault.As(d.enters()).Message).
			WithRemedy("mount the whole volume, or update the Engine to Docker 26")
	}
	return nil
}

// mountsPartsHere is mountsParts with what only the Engine tells.
func (d *Driver) mountsPartsHere(ctx context.Context, info engineapi.Info) error {
	if err := d.mountsParts(); err != nil || d.engine.MountsParts() {
		return err
	}
	if d.runtime == "" && !sharesKernel(info.DefaultRuntime) {
		return otherKernel(info.DefaultRuntime)
	}
	return d.seesEngine(ctx)
}

// otherKernel is of containers whose mounts the server cannot go into.
func otherKernel(runtime string) error {
	return fault.New(fault.Unsupported, "containers of the runtime %s have a kernel of their own, in which the server mounts no directories of volumes", sandbox.Clip(runtime, 40)).
		WithRemedy("mount the whole volume, or set docker.runtime: runc")
}

// enters says why the server cannot go into the mounts of containers, and is nil where it may.
func (d *Driver) enters() error {
	const remedy = "run the server as root, on the Engine's own host"
	no := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, format, args...).WithRemedy(remedy)
	}
	switch {
	case d.stream.Load():
		return no("the containers are behind the Engine, which shares no files with the server")
	case !sharesKernel(d.runtime):
		return no("containers of the runtime %s have a kernel of their own", sandbox.Clip(d.runtime, 40))
	case os.Geteuid() != 0:
		return no("the server is not root")
	}
	return nil
}

// engineMounts is how the Engine mounts volumes.
func (d *Driver) engineMounts(mounts []sandbox.Mount) []engineapi.Mount {
	var out []engineapi.Mount
	for n, m := range mounts {
		e := engineapi.Mount{Type: "volume", Source: d.engineVolume(m.Volume), Target: m.Path, ReadOnly: m.ReadOnly, Volume: &engineapi.VolumeOptions{NoCopy: true}}
		switch {
		case m.Sub == "":
		case d.engine.MountsParts():
			e.Volume.Subpath = m.Sub
		default:
			e.Target = insideVolume(n) // see arrange
			e.ReadOnly = m.ReadOnly && !d.makesInside()
		}
		out = append(out, e)
	}
	return out
}

// makesInside reports whether directories of volumes that are missing are made in the mounts of a container: an archive that Podman unpacks
// beside a volume does not reach into it.
func (d *Driver) makesInside() bool { return d.engine.Podman() }

// mountsLabel is what a container's label says of its volumes: "" of one that has none.
func mountsLabel(mounts []sandbox.Mount) string {
	if len(mounts) == 0 {
		return ""
	}
	bare := make([]sandbox.Mount, len(mounts))
	for n, m := range mounts {
		m.Name = "" // which is the records'
		bare[n] = m
	}
	b, err := json.Marshal(bare)
	if err != nil {
		panic(err) // strings are always JSON
	}
	return string(b)
}

// mountsOf reads a label of mountsLabel's. What it says is the Engine's word.
func mountsOf(c engineapi.Inspected) ([]sandbox.Mount, error) {
	label := c.Config.Labels[labelMounts]
	if label == "" {
		return nil, nil
	}
	var out []sandbox.Mount
	err := json.Unmarshal([]byte(label), &out)
	if err == nil {
		err = sandbox.CheckMounts(out)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the volumes of the container %s cannot be read from its labels", sandbox.Clip(c.Name, 100))
	}
	return out, nil
}

// thereAre is fault.NotFound unless all volumes are there: an Engine makes those that are missing.
func (d *Driver) thereAre(ctx context.Context, mounts []sandbox.Mount) error {
	for _, m := range mounts {
		if _, err := d.volume(ctx, m.Volume); err != nil {
			return err
		}
	}
	return nil
}

// withVolumes has create make a container of the spec, of an image in which its volumes have places.
// Nobody removes the volumes meanwhile.
func (d *Driver) withVolumes(ctx context.Context, spec runtime.Spec, image string, stream bool, create func(engineapi.Container) error) (err error) {
	if len(spec.Mounts) == 0 {
		return d.makeOne(ctx, spec, image, stream, create)
	}
	d.volumes.RLock()
	defer d.volumes.RUnlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.thereAre(ctx, spec.Mounts); err != nil {
		return err
	}
	image, done, err := d.furnish(ctx, spec.ID, image, spec.Mounts)
	if err != nil {
		return err
	}
	defer done()
	if err := d.makeOne(ctx, spec, image, stream, create); err != nil {
		return err
	}
	return d.thereAre(ctx, spec.Mounts) // somebody may have removed one by hand, and got an empty one in its place
}

// makeOne has a sandbox's container made.
func (d *Driver) makeOne(ctx context.Context, spec runtime.Spec, image string, stream bool, create func(engineapi.Container) error) error {
	c := d.container(spec, image, stream)
	if err := d.limitDisk(ctx, &c, spec.Limits); err != nil {
		return err
	}
	return create(c)
}

// arrange does what the Engine does not, in the mounts of a container that was just started: directories of
// volumes come to their places, and nothing on a volume is trusted. No command runs yet.
func (i *Instance) arrange(ctx context.Context, mounts []sandbox.Mount) error {
	if err := i.handNew(ctx, mounts); err != nil {
		return i.orDown(err)
	}
	if len(mounts) == 0 || i.d.enters() != nil {
		return nil // no part that is the server's to mount is among them: see checkMounts and finishVolumes
	}
	c, err := i.d.engine.InspectContainer(ctx, i.its())
	if err != nil {
		return i.orDown(err)
	}
	name, err := i.d.engine.RuntimeOf(ctx, c) // the Engine's default, by then
	if err != nil {
		return i.orDown(err)
	}
	if !sharesKernel(name) {
		if hasParts(c) {
			return otherKernel(name)
		}
		return nil
	}
	places := make([]mount.Place, len(mounts))
	for n, m := range mounts {
		places[n] = mount.Place{At: m.Path, ReadOnly: m.ReadOnly}
		if m.Sub != "" && hasMount(c, insideVolume(n)) {
			places[n].Whole, places[n].Sub, places[n].Make = insideVolume(n), m.Sub, i.d.makesInside()
		}
	}
	ns, err := i.openNamespace(ctx, host.OpenMounts)
	if fault.Is(err, fault.Unsupported) && !hasParts(c) {
		return nil // the Engine's processes are not seen here
	}
	if err != nil {
		return i.orDown(err)
	}
	defer func() { _ = ns.Close() }()
	err = mount.Arrange(ns, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, places)
	if blocked := new(mount.Blocked); asBlocked(err, &blocked) {
		return blockedAt(blocked.Path, "a volume cannot be mounted")
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the volumes of sandbox %s cannot be mounted", i.id).WithRemedy("see the server's log")
	}
	return nil
}

// finishVolumes arranges what an earlier server may have ended before it had. A container in which the whole of a volume is for a part that
// cannot be mounted is stopped.
func (i *Instance) finishVolumes(ctx context.Context, c engineapi.Inspected) error {
	mounts, err := mountsOf(c)
	if err == nil && hasParts(c) {
		err = i.d.enters()
	}
	if err == nil {
		err = i.arrange(ctx, mounts)
	}
	if err == nil || fault.Is(err, fault.State) {
		return nil
	}
	if !hasParts(c) { // its root may have moved their places since
		i.d.log.Warn("the volumes of a sandbox could not be mounted nosuid and nodev anew", "sandbox", i.id, "error", err)
		return nil
	}
	i.d.log.Error("a sandbox is stopped: its volumes cannot be mounted as they should be", "sandbox", i.id, "error", err)
	return i.stop(ctx, 0)
}

// hasParts reports whether the server has to put parts of volumes in their places in a container.
func hasParts(c engineapi.Inspected) bool {
	for _, m := range c.Mounts {
		if strings.HasPrefix(m.Destination, insideVolumes+"/") {
			return true
		}
	}
	return false
}

func hasMount(c engineapi.Inspected, at string) bool {
	for _, m := range c.Mounts {
		if m.Destination == at {
			return true
		}
	}
	return false
}

// blockedAt is the error of a path on which something is that is no directory.
func blockedAt(path, what string) error {
	return fault.New(fault.Conflict, "%s at %s: that, or a directory on the way, is a file or a link", what, sandbox.Clip(path, 80)).
		WithRemedy("remove what is there, or choose another path")
}
