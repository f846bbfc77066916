// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Probe says what the Engine can, by what it says of itself.
func (d *Driver) Probe(ctx context.Context) (runtime.Capabilities, error) {
	info, err := d.engine.Info(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.chooseTransport(ctx); err != nil {
		return nil, err
	}
	disk := d.MayLimitDisk(ctx)
	if disk != nil && !fault.Is(disk, fault.Unsupported) {
		return nil, disk
	}
	no := func(remedy, format string, args ...any) error {
		return fault.New(fault.Unsupported, format, args...).WithRemedy("%s", remedy)
	}
	const other = "use the native runtime"
	limit := func(can bool, what string) error {
		if can && !isFree(info) {
			return nil
		}
		return no("see the warnings of docker info: the host's kernel or the Engine's rights lack it", "the Engine at %s cannot limit %s", d.engine.Host(), what)
	}
	var freezes error
	if isFree(info) {
		freezes = d.cannotFreeze()
	}
	return runtime.Capabilities{
		runtime.Isolation:      d.isolates(info, no),
		runtime.LimitCPU:       limit(info.CPUCfsQuota, "processors"),
		runtime.LimitMemory:    limit(info.MemoryLimit && info.SwapLimit, "memory without swap"),
		runtime.LimitSockets:   no(other, "the docker runtime does not have the Engine count what sockets hold"),
		runtime.LimitPids:      limit(info.PidsLimit, "processes"),
		runtime.LimitDisk:      disk,
		runtime.KillTree:       keepsTrees(info, no),
		runtime.TrackChanges:   nil,
		runtime.WatchFiles:     nil,
		runtime.RootUser:       nil,
		runtime.Sudo:           no("run commands with user root, or use the native runtime", "the agent has no cgroups in a container, and cannot start a command of root's among the processes of the one that asks for it, with which it would have to end"),
		runtime.RootDisk:       nil,
		runtime.Reopen:         nil,
		runtime.Pause:          freezes,
		runtime.Resize:         freezes,
		runtime.Snapshots:      freezes,
		runtime.CheapSnapshots: no(other, "the Engine copies what a disk holds beside its image for each snapshot"),
		runtime.Volumes:        nil,
		runtime.VolumeParts:    d.mountsPartsHere(ctx, info),
		runtime.Network:        d.brings(ctx, info),
	}, nil
}

// keepsTrees is of the agent, which has no cgroups of its own in a container, and keeps a command's
// processes together by a part that is written for one processor.
func keepsTrees(info engineapi.Info, no func(remedy, format string, args ...any) error) error {
	if info.Architecture == "x86_64" || info.Architecture == "amd64" {
		return nil
	}
	return no("stop the sandbox: that ends all", "on %s a process that forks twice and leaves its session outlives its command", sandbox.Clip(info.Architecture, 20))
}

func (d *Driver) isolates(info engineapi.Info, no func(remedy, format string, args ...any) error) error {
	if !slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.HasPrefix(o, "name=seccomp") && !strings.Contains(o, "unconfined") }) {
		return no("start it on a kernel with seccomp, and with its default profile", "the Engine at %s filters no system calls", d.engine.Host())
	}
	if mapsUsers(info) || isRootless(info) {
		return no("use the native runtime for code that is hostile", "the Engine at %s maps root to nobody, but all containers to the same users, whose files, locks and limits they share, and they are shown what the host has and does", d.engine.Host())
	}
	return no("have the Engine map users (userns-remap), or use the native runtime for code that is hostile", "containers of an Engine without user namespaces share root's id with the host, and the system's files are kept from the user by owner and mode alone")
}
