// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/steer"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

var _ runtime.Networker = (*Instance)(nil)

// Steer brings the container's traffic to the server from outside, through its network namespace, or through the
// agent where that is reached by streams. The namespace has a loopback and nothing else, and each start makes a new one.
func (i *Instance) Steer(ctx context.Context) (runtime.Traffic, error) {
	if i.streams() {
		return i.bringTraffic(ctx)
	}
	if err := i.d.unsteered(); err != nil {
		return nil, err
	}
	if _, err := i.life(); err != nil {
		return nil, err
	}
	c, err := i.d.engine.InspectContainer(ctx, i.its())
	if err != nil {
		return nil, i.orDown(err)
	}
	if err := i.sharesNetworks(ctx, c); err != nil {
		return nil, err
	}
	netns, err := i.openNamespace(ctx, host.OpenNetwork)
	if err != nil {
		return nil, i.orDown(err)
	}
	defer func() { _ = netns.Close() }()
	if err := steer.Confined(netns); err != nil {
		if f := fault.As(err); f != nil && f.Code == fault.Conflict {
			return nil, f.WithRemedy(disconnect, i.d.containerName(i.id))
		}
		return nil, err
	}
	s, err := steer.Open(netns)
	if err != nil {
		return nil, i.orDown(err)
	}
	return runtime.FromKernel(s), nil
}

const disconnect = "somebody gave its container a network: docker network disconnect NETWORK %s"

// openNamespace opens a namespace of what listens at the agent's socket. By number the kernel says who
// that is: the Engine's numbers may be those of another namespace of processes. Only what is in the
// container can listen there, and its cgroup, which nothing inside writes to, has the container's id.
func (i *Instance) openNamespace(ctx context.Context, open func(pid int, pidfd *os.File) (*os.File, error)) (*os.File, error) {
	nc, err := i.reach(ctx)
	if err != nil {
		return nil, err
	}
	pid, err := listenerOf(nc)
	_ = nc.Close()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "who listens at the agent's socket of sandbox %s cannot be seen", i.id)
	}
	if pid <= 0 {
		return nil, i.d.unseen()
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, i.agentGone(err)
	}
	pidfd := os.NewFile(uintptr(fd), "pidfd")
	defer func() { _ = pidfd.Close() }()
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return nil, i.agentGone(err)
	}
	// What was read is of the process behind pidfd, if that is there after it.
	ns, err := open(pid, pidfd)
	if errors.Is(err, os.ErrPermission) {
		return nil, fault.Wrap(fault.Unsupported, err, "the server may not enter the namespaces of sandbox %s", i.id).WithRemedy("run the server as root of the host")
	}
	if err != nil {
		return nil, i.agentGone(err)
	}
	if container := i.its(); container == "" || !bytes.Contains(groups, []byte(container)) {
		_ = ns.Close()
		return nil, fault.New(fault.Unavailable, "what listens at the agent's socket of sandbox %s is process %d, which is in no cgroup of its container", i.id, pid).
			WithRemedy("stop the sandbox and start it again")
	}
	return ns, nil
}

func (i *Instance) agentGone(err error) error {
	return fault.Wrap(fault.Unavailable, err, "what listened at the agent's socket of sandbox %s has ended (%s)", i.id, err)
}

// listenerOf returns the number of the process that listens at a socket, which the kernel noted when it
// began to; 0: none that this process sees.
func listenerOf(nc net.Conn) (pid int, err error) {
	u, ok := nc.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("a connection is a %T", nc)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	outer := raw.Control(func(fd uintptr) {
		var c *unix.Ucred
		if c, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(c.Pid)
		}
	})
	return pid, errors.Join(err, outer)
}

// sharesKernel are OCI runtimes whose containers have the host's network stack. Others have one of their
// own, in a virtual machine or in a program, that nothing here steers.
func sharesKernel(runtime string) bool {
	return slices.Contains([]string{"", "runc", "io.containerd.runc.v2", "crun", "youki", "nvidia"}, runtime)
}

func apart(runtime string) error {
	return fault.New(fault.Unsupported, "containers of the runtime %s have a network stack of their own, of which no traffic can be brought to the server", sandbox.Clip(runtime, 40)).
		WithRemedy("set docker.runtime: runc")
}

// sharesNetworks says that a container's OCI runtime, the Engine's default by then, has a network stack of its own.
func (i *Instance) sharesNetworks(ctx context.Context, c engineapi.Inspected) error {
	name, err := i.d.engine.RuntimeOf(ctx, c)
	if err != nil {
		return i.orDown(err)
	}
	if !sharesKernel(name) {
		return apart(name)
	}
	return nil
}

// unsteered says why no traffic of containers can come to the server, as far as this side of the Engine
// shows; nil: it can.
func (d *Driver) unsteered() error {
	if !sharesKernel(d.runtime) {
		return apart(d.runtime)
	}
	return nil
}

// unseen says that the Engine's processes are in a namespace that is not below the server's.
func (d *Driver) unseen() error {
	return fault.New(fault.Unsupported, "the server does not see the processes of the Engine at %s, and so enters none of its containers", d.engine.Host()).
		WithRemedy("run the server outside of containers, or with the host's processes (docker run --pid host), or set docker.stream: true")
}

// brings is unsteered with what only a trial and the Engine tell.
func (d *Driver) brings(ctx context.Context, info engineapi.Info) error {
	if err := d.unsteered(); err != nil {
		return err
	}
	if d.runtime == "" && !sharesKernel(info.DefaultRuntime) {
		return apart(info.DefaultRuntime)
	}
	if d.stream.Load() {
		return nil // whether the Engine's kernel can is seen by the first step
	}
	if err := d.seesEngine(ctx); err != nil {
		return err
	}
	return d.trial()
}

// seesEngine returns unseen where the Engine's processes are not seen here, and so those of its containers.
func (d *Driver) seesEngine(ctx context.Context) error {
	nc, err := d.engine.Host().Dial(ctx)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the Engine at %s does not answer", d.engine.Host())
	}
	pid, err := listenerOf(nc)
	_ = nc.Close()
	if err == nil && pid <= 0 {
		return d.unseen()
	}
	return nil
}
