// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

var _ runtime.DiskLimiter = (*Driver)(nil)

// An Engine limits what a container writes where its driver of layers can: by an option of the container's, which is not
// changed later. What one has is in its labelDisk; with another limit it is made anew at the next start, of its disk.

// limitable is what of its containers an Engine can limit.
type limitable struct {
	noDisk error // why no disk has a limit, fault.Unsupported; nil: they have
	whole  bool  // a limit counts the image, too
	noCPU  bool  // the Engine refuses to limit processors
	free   bool  // it has no control groups: nothing is limited, and nothing is frozen
}

// sizeOption is the Engine's option of a container, in bytes.
const sizeOption = "size"

// MayLimitDisk says whether the Engine's layers can have limits.
func (d *Driver) MayLimitDisk(ctx context.Context) error {
	l, err := d.limitable(ctx)
	if err != nil {
		return err
	}
	return l.noDisk
}

// limitable finds out what can be limited, anew when the Engine was lost.
func (d *Driver) limitable(ctx context.Context) (limitable, error) {
	if err := d.disks.mu.lock(ctx); err != nil {
		return limitable{}, err
	}
	defer d.disks.mu.unlock()
	begun := d.begun.Load()
	if d.disks.found && d.disks.of == begun {
		return d.disks.limits, nil
	}
	l, err := d.tryLimits(ctx)
	if err != nil {
		return limitable{}, err
	}
	d.disks.limits, d.disks.of, d.disks.found = l, begun, true
	return l, nil
}

// foundLimits is what limitable found.
type foundLimits struct {
	mu chanLock
	// The following are guarded by mu.
	found  bool
	of     int64 // d.begun then
	limits limitable
}

// tryLimits has the Engine make a container with a limit, where its driver of layers may have some: whether their file system
// counts what each writes, it does not say of itself.
func (d *Driver) tryLimits(ctx context.Context) (l limitable, err error) {
	info, err := d.engine.Info(ctx)
	if err != nil {
		return l, err
	}
	l.noCPU, l.free = !info.CPUCfsQuota || isFree(info), isFree(info)
	no := func(remedy, format string, args ...any) (limitable, error) {
		return limitable{noCPU: l.noCPU, free: l.free, noDisk: fault.New(fault.Unsupported, format, args...).WithRemedy("%s", remedy)}, nil
	}
	const other = "use the native runtime"
	const how = "have the Engine keep its data on xfs that is mounted with pquota, or use the native runtime"
	status := statusOf(info)
	driver, below := sandbox.Clip(info.Driver, 20), sandbox.Clip(status["Backing Filesystem"], 20)
	switch {
	case d.engine.Podman():
		return no(other, "the docker runtime sets no limit to the layers of Podman")
	case status["driver-type"] != "": // of containerd's, which take the option and have no limit
		return no(how, "the Engine at %s keeps layers in containerd, which sets them no limit", d.engine.Host())
	case info.Driver == "overlay2" && status["Backing Filesystem"] == "xfs":
	case info.Driver == "overlay2":
		return no(how, "the Engine at %s has its layers by overlay2 on %q, where they have no limit", d.engine.Host(), below)
	case info.Driver == "btrfs":
		l.whole = true
	default:
		return no(how, "the docker runtime sets no limit to an Engine's layers by %q", driver)
	}
	ctx, cancel := d.finishing(ctx, undoTimeout)
	defer cancel()
	image, removeImage, err := d.trialImage(ctx)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, removeImage(ctx)) }()
	img, err := d.engine.InspectImage(ctx, image)
	if err != nil {
		return l, err
	}
	c := engineapi.Container{
		Name:   "sandpit-" + d.namespace + "-trial-" + rand.Text(),
		Config: engineapi.Config{Image: image, Cmd: []string{"none"}, Labels: map[string]string{labelServer: d.namespace, labelRole: roleAgent, labelSandbox: ""}},
		Host:   engineapi.HostConfig{NetworkMode: "none", CapDrop: []string{"ALL"}, StorageOpt: sizeOf(l, sandbox.MinDiskMB, img.Size)},
	}
	made, err := d.engine.CreateContainer(ctx, c)
	switch {
	case err == nil:
		return l, d.engine.RemoveContainer(ctx, made)
	case refusesSize(err):
		why := err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			why = cause.Error()
		}
		return no(how, "the Engine at %s limits no layers by %s on %q: %s", d.engine.Host(), driver, below, sandbox.Clip(why, 200))
	}
	return l, err
}

// refusesSize reports whether an Engine refuses a container since it cannot limit its layer.
func refusesSize(err error) bool {
	said := err.Error()
	if cause := errors.Unwrap(err); cause != nil {
		said += cause.Error()
	}
	said = strings.ToLower(said)
	for _, word := range []string{"storage-opt", "storage option", "quota", "qgroup"} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}

func statusOf(info engineapi.Info) map[string]string {
	out := map[string]string{}
	for _, pair := range info.DriverStatus {
		out[pair[0]] = pair[1]
	}
	return out
}

// sizeOf is the option of a container with so much for what it writes, of an image of so many bytes. A limit that counts
// the image has a quarter of that on top: an Engine counts bytes of files, and its file system blocks, and what it keeps of each.
func sizeOf(l limitable, diskMB int, image int64) map[string]string {
	n := int64(diskMB) << 20
	if l.whole {
		n += image + image/4
	}
	return map[string]string{sizeOption: strconv.FormatInt(n, 10)}
}

// diskLabel is a container's labelDisk: its limit in MiB; "": it has none.
func diskLabel(l limitable, limits sandbox.Limits) string {
	if l.noDisk != nil || limits.DiskMB <= 0 {
		return ""
	}
	return strconv.Itoa(limits.DiskMB)
}

// limitDisk gives a container that is to be made its limit.
func (d *Driver) limitDisk(ctx context.Context, c *engineapi.Container, limits sandbox.Limits) error {
	l, err := d.limitable(ctx)
	if err != nil {
		return err
	}
	if l.noCPU {
		c.Host.NanoCpus = 0
	}
	label := diskLabel(l, limits)
	c.Labels = maps.Clone(c.Labels)
	c.Labels[labelDisk] = label
	if label == "" {
		return nil
	}
	var size int64
	if l.whole {
		img, err := d.engine.InspectImage(ctx, c.Image)
		if err != nil {
			return err
		}
		size = img.Size
	}
	c.Host.StorageOpt = sizeOf(l, limits.DiskMB, size)
	return nil
}

// diskOfLabel is the limit that a container was made with, in MiB; zero: none.
func diskOfLabel(c engineapi.Inspected) int {
	n, err := strconv.Atoi(c.Config.Labels[labelDisk])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// orFull names the sandbox's own limit as what is full, where it has one: the Engine's words are the same for both.
func (i *Instance) orFull(ctx context.Context, limits sandbox.Limits, err error) error {
	if !fault.Is(err, fault.Full) {
		return err
	}
	l, e := i.d.limitable(ctx)
	if label := diskLabel(l, limits); e != nil || label == "" {
		return err
	}
	return fault.NoSpace(fault.SandboxDisk, err, "the disk of sandbox %s, of %d MiB, has no room for what its agent reads at the start: %s", i.id, limits.DiskMB, err).
		WithRemedy("give it a larger disk_mb, which a start puts into effect; where the Engine's own disk is full, make room there")
}

// isFree reports whether the Engine has no control groups, as one that is not root on a host with version 1 of them.
// Podman says of such a host what root could limit.
func isFree(info engineapi.Info) bool {
	return info.CgroupDriver == "none" || isRootless(info) && info.CgroupVersion == "1"
}

// cannotFreeze says why an Engine without control groups stops nothing where it stands.
func (d *Driver) cannotFreeze() error {
	return fault.New(fault.Unsupported, "the Engine at %s has no control groups, and can neither limit nor freeze what runs", d.engine.Host()).
		WithRemedy("stop the sandbox first; an Engine that is not root has them on a host with version 2 of control groups")
}

// hasGroups refuses what an Engine without control groups cannot do.
func (d *Driver) hasGroups(ctx context.Context) error {
	l, err := d.limitable(ctx)
	if err == nil && l.free {
		return d.cannotFreeze()
	}
	return err
}

// setLimits gives a container that is down its limits, or one of Podman's that runs: those that the Engine has.
func (d *Driver) setLimits(ctx context.Context, container string, limits sandbox.Limits) error {
	l, err := d.limitable(ctx)
	if err != nil || l.free {
		return err
	}
	want := resources(limits)
	if l.noCPU {
		want.NanoCpus = 0
	}
	return d.engine.UpdateContainer(ctx, container, want)
}

// keepsDisk refuses another limit for what runs.
func (i *Instance) keepsDisk(c engineapi.Inspected, limits sandbox.Limits) error {
	if had := diskOfLabel(c); had != 0 && had != limits.DiskMB {
		return fault.New(fault.Unsupported, "an Engine changes the limit of no layer that there is, which is %d MiB", had).
			WithRemedy("stop the sandbox first: it has another one from its next start on")
	}
	return nil
}
