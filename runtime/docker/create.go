// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Capabilities are all that the agent and the container's root have: enough for dpkg, pip and adduser,
// nothing that mounts, traces or configures. Commands of the user have none.
func Capabilities() []string {
	return []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}
}

// KnownCapabilities are all names that Linux has, in the order of their numbers.
func KnownCapabilities() []string {
	return strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
		NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT
		SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG
		WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)
}

// podmanProcesses is what Podman sets RLIMIT_NPROC to by itself.
const podmanProcesses = 1 << 20

// shmBytes is the size of /dev/shm, which counts against the memory limit.
const shmBytes = 64 << 20

// resources are the limits of a container. Swap is not on top, but the agent's threads are.
func resources(l sandbox.Limits) engineapi.Resources {
	memory := int64(l.MemoryMB) << 20
	return engineapi.Resources{
		NanoCpus: int64(math.Round(l.CPU * 1e9)), Memory: memory, MemorySwap: memory, PidsLimit: int64(l.Pids) + agentThreads,
	}
}

// hostConfig is what every container gets of its host: no network, no right beyond the list, no
// file of the host but the agent's directory, and the volumes.
func (d *Driver) hostConfig() engineapi.HostConfig {
	no := false
	h := engineapi.HostConfig{
		NetworkMode: "none", IpcMode: "private", CapDrop: []string{"ALL"}, CapAdd: Capabilities(),
		SecurityOpt: []string{"no-new-privileges"}, Init: &no, ShmSize: shmBytes, Runtime: d.runtime,
		Ulimits: []engineapi.Ulimit{
			{Name: "core", Soft: 1, Hard: 1}, // 1 keeps the host's core_pattern program from starting
			{Name: "nofile", Soft: agentFiles, Hard: agentFiles},
		},
		// The kernel's own defaults. An Engine lets every user bind all ports, that of DNS among them, and send pings.
		Sysctls: map[string]string{"net.ipv4.ip_unprivileged_port_start": "1024", "net.ipv4.ping_group_range": "1 0"},
	}
	h.LogConfig.Type, h.RestartPolicy.Name = "none", "no"
	return h
}

// processLimit returns RLIMIT_NPROC as this server has it. Podman sets 1,048,576 otherwise, and its OCI runtime fails
// where the host does not allow so many. It is the host's, and no part of the fingerprint.
func (d *Driver) processLimit() []engineapi.Ulimit {
	var own unix.Rlimit
	if !d.engine.Host().Local() || unix.Getrlimit(unix.RLIMIT_NPROC, &own) != nil || own.Max >= podmanProcesses {
		return nil
	}
	n := int64(own.Max) //nolint:gosec // less than a million
	return []engineapi.Ulimit{{Name: "nproc", Soft: n, Hard: n}}
}

// container is a sandbox as its Engine makes it.
func (d *Driver) container(spec runtime.Spec, image string, stream bool) engineapi.Container {
	h := d.hostConfig()
	labels := map[string]string{
		labelServer: d.namespace, labelSandbox: string(spec.ID), labelProject: spec.Project, labelOf: image, labelPolicy: fingerprint(h),
		labelImage: spec.Image.Digest, labelMounts: mountsLabel(spec.Mounts),
		labelSnapshot: "", labelRole: "", // those of the image are not the container's
	}
	h.Ulimits = append(h.Ulimits, d.processLimit()...)
	h.Resources = resources(spec.Limits)
	h.Mounts = []engineapi.Mount{
		{Type: "volume", Source: d.volumeName(), Target: insideAgent, ReadOnly: true},
	}
	if !stream {
		h.Mounts = append(h.Mounts, engineapi.Mount{Type: "bind", Source: filepath.Join(d.instances.Name(), string(spec.ID), runDir), Target: insideRun})
	}
	h.Mounts = append(h.Mounts, d.engineMounts(spec.Mounts)...)
	return engineapi.Container{
		Name: d.containerName(spec.ID), Host: h,
		Config: engineapi.Config{
			Image: image, Hostname: spec.Hostname, User: "0:0", Entrypoint: []string{insideProgram}, Cmd: []string{"serve", insideConfig},
			Env: agentEnv(), WorkingDir: "/", Labels: labels, StopSignal: "SIGKILL", Healthcheck: &engineapi.Healthcheck{Test: []string{"NONE"}},
		},
	}
}

// check refuses what this driver cannot do, before anything is made.
func (d *Driver) check(spec runtime.Spec) error {
	if !sandbox.ValidID(string(spec.ID)) {
		return fault.InvalidField("id", "%q is not a valid sandbox id", sandbox.Clip(string(spec.ID), 40))
	}
	return d.checkMounts(spec.Mounts)
}

// Create makes a container and starts it.
func (d *Driver) Create(ctx context.Context, spec runtime.Spec) (_ runtime.Instance, err error) {
	if err := d.check(spec); err != nil {
		return nil, err
	}
	if err := d.thereAre(ctx, spec.Mounts); err != nil {
		return nil, err
	}
	image, err := d.image(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	if err := d.chooseTransport(ctx); err != nil {
		return nil, err
	}
	if err := d.agent.do(ctx, func() error { return d.fillAgent(ctx, image) }); err != nil {
		return nil, err
	}
	if spec.From != "" {
		if image, err = d.diskOf(ctx, spec.From, spec.Image.Digest); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i := d.newInstance(spec.ID)
	i.stream = d.stream.Load()
	end, err := i.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if d.register(i) != i {
		return nil, fault.New(fault.Exists, "sandbox %s exists", spec.ID)
	}
	// From here on a caller that goes away is answered when it is known what there is to take back.
	work, cancel := d.finishing(ctx, undoTimeout)
	defer cancel()
	have, err := d.find(work, labelSandbox+"="+string(spec.ID))
	if err == nil && len(have) > 0 {
		err = fault.New(fault.Exists, "sandbox %s exists", spec.ID)
	}
	if err != nil {
		d.forget(i)
		return nil, err
	}
	err = i.make(work, spec, image)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		undoing, done := d.finishing(ctx, undoTimeout)
		defer done()
		if undo := i.remove(undoing); undo != nil {
			d.log.Error("a sandbox that was not made is left behind", "sandbox", spec.ID, "error", undo)
			err = errors.Join(err, undo)
		}
		return nil, err
	}
	return i, nil
}

// make has the container made and started. verb is held.
func (i *Instance) make(ctx context.Context, spec runtime.Spec, image string) error {
	if err := i.makeDirectory(ctx); err != nil {
		return err
	}
	err := i.d.withVolumes(ctx, spec, image, i.streams(), func(c engineapi.Container) error {
		made, err := i.d.engine.CreateContainer(ctx, c)
		i.mu.Lock()
		i.container = made
		i.mu.Unlock()
		switch {
		case fault.Is(err, fault.Conflict):
			err = fault.Wrap(fault.Conflict, err, "another container is called %s", c.Name).WithRemedy("rename or remove it: docker rename, docker rm")
		case err != nil && !i.streams() && isMissingSource(err):
			err = fault.Wrap(fault.Unsupported, err, "the Engine at %s does not see the server's files any more, where the agent would be reached", i.d.engine.Host()).
				WithRemedy("restart the server, or set docker.stream: true")
		}
		return err
	})
	if err != nil {
		i.unsure = true
		return err
	}
	return i.start(ctx, spec)
}
