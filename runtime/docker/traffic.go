// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/traffic"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

const (
	// stepPatience bounds the container that makes sockets, from when it is asked for on.
	stepPatience = time.Minute
	stepMemory   = 64 << 20
	stepPids     = 32
)

// bringTraffic has the agent bring the container's traffic, over a stream of its own: calls do not wait for it. The agent
// of a container that is frozen begins when that is not any more.
func (i *Instance) bringTraffic(ctx context.Context) (runtime.Traffic, error) {
	if thawed := i.whenThawed(); thawed != nil {
		if err := i.d.unsteered(); err != nil {
			return nil, err
		}
		return newLaterTraffic(thawed, i.carryTraffic), nil
	}
	return i.carryTraffic(ctx)
}

// carryTraffic begins it now.
func (i *Instance) carryTraffic(ctx context.Context) (runtime.Traffic, error) {
	if err := i.d.unsteered(); err != nil {
		return nil, err
	}
	if _, err := i.life(); err != nil {
		return nil, err
	}
	container := i.its()
	c, err := i.d.engine.InspectContainer(ctx, container)
	if err != nil {
		return nil, i.orDown(err)
	}
	if err := i.sharesNetworks(ctx, c); err != nil {
		return nil, err
	}
	// What is connected to a network shows there before it has an interface.
	for name := range c.NetworkSettings.Networks {
		if name != "none" {
			return nil, fault.New(fault.Conflict, "the sandbox's container is connected to the network %q, by which it would get around the server", sandbox.Clip(name, 40)).
				WithRemedy(disconnect, i.d.containerName(i.id))
		}
	}
	i.mu.Lock()
	key := i.key
	i.mu.Unlock()
	if key == nil {
		return nil, i.keyLost()
	}
	nc, err := i.dialStream(ctx, i.streamsTo(container, key, handshake.Traffic))
	if err != nil {
		return nil, i.orDown(err)
	}
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	t, err := traffic.Begin(ctx, nc, func(ctx context.Context, socket string) error { return i.step(ctx, c, socket) })
	if err != nil {
		if f := fault.As(err); f.Code == fault.Conflict && f.Remedy == "" {
			err = f.WithRemedy(disconnect, i.d.containerName(i.id))
		}
		return nil, i.orDown(err)
	}
	return carried{t}, nil
}

// carried is traffic that comes through an agent.
type carried struct{ *traffic.Server }

func (c carried) Accept() (runtime.Conn, error) {
	conn, err := c.Server.Accept()
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// step makes the sockets that the traffic of container c comes to: the agent's program does it in a container that has
// the other's network and CAP_NET_ADMIN, and nothing else of either. It ends with that program, or with ctx.
func (i *Instance) step(ctx context.Context, c engineapi.Inspected, socket string) (err error) {
	work, cancel := i.d.finishing(ctx, undoTimeout)
	defer cancel()
	made := i.d.stepContainer(c, socket)
	id, err := i.d.engine.CreateContainer(work, made)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.d.engine.RemoveContainer(work, id)) }()
	if err := i.d.engine.StartContainer(work, id); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.Wrap(fault.Unsupported, err, "the Engine at %s starts no program in the network of a container that may configure it: %s", i.d.engine.Host(), fault.As(err).Message).
			WithRemedy("allow containers CAP_NET_ADMIN there, or ask for a sandbox without a network")
	}
	for {
		select {
		case <-ctx.Done():
			return nil // the agent has them, or nobody wants them
		case <-time.After(20 * time.Millisecond):
		}
		now, err := i.d.engine.InspectContainer(work, id)
		if err != nil {
			return err
		}
		switch now.State.Status {
		case "created", "running":
		default:
			// What it could say it said to the agent, which may be about to tell.
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Second):
			}
			return fault.Wrap(fault.Unavailable, fmt.Errorf("exit code %d, %s", now.State.ExitCode, now.State.Error), "the program that brings the traffic of sandbox %s to its agent ended before it had", i.id).
				WithRemedy("stop the sandbox and start it again")
		}
	}
}

// stepContainer is what runs the step.
func (d *Driver) stepContainer(c engineapi.Inspected, socket string) engineapi.Container {
	no := false
	h := engineapi.HostConfig{
		NetworkMode: "container:" + c.ID, CapDrop: []string{"ALL"}, CapAdd: []string{"NET_ADMIN", "NET_BIND_SERVICE"},
		SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true, Init: &no, Runtime: c.HostConfig.Runtime,
		Mounts:    []engineapi.Mount{{Type: "volume", Source: d.volumeName(), Target: insideAgent, ReadOnly: true}},
		Resources: engineapi.Resources{Memory: stepMemory, MemorySwap: stepMemory, PidsLimit: stepPids},
		Ulimits:   d.processLimit(),
		// An Engine switches IPv6 off in such a network. The program itself may not write there.
		Sysctls: map[string]string{"net.ipv6.conf.all.disable_ipv6": "0"},
	}
	h.LogConfig.Type, h.RestartPolicy.Name = "none", "no"
	return engineapi.Container{
		Name: "sandpit-" + d.namespace + "-step-" + rand.Text(), Host: h,
		Config: engineapi.Config{
			Image: c.Image, User: "0:0", Entrypoint: []string{insideProgram}, Cmd: []string{"step", socket}, Env: agentEnv(), WorkingDir: "/",
			Labels: map[string]string{
				labelServer: d.namespace, labelRole: roleStep, labelOf: c.Image, labelSandbox: "", labelSnapshot: "", labelImage: "",
			},
			StopSignal: "SIGKILL", Healthcheck: &engineapi.Healthcheck{Test: []string{"NONE"}},
		},
	}
}
