// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"sandpit.dev/agent"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// readDisk calls use with an archive of the disk as it is: of what it is to be filled from, where that has not been done yet, of what the
// agent sends, or that of a pod which has nothing but the agent. verb is held.
func (i *Instance) readDisk(ctx context.Context, use func(io.Reader) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, diskPatience, fault.New(fault.Unavailable, "the disk of sandbox %s was not read within %v", i.id, diskPatience))
	defer cancel()
	_, err := i.life()
	switch {
	case err == nil:
		err = copyDisk(ctx, agent.NewClient(i.Dial), use)
	case !fault.Is(err, fault.State):
		return err
	case i.has(diskFile):
		a, err := i.d.openArchive(ctx, i.pendingFile())
		if err != nil {
			return fault.Wrap(fault.Internal, err, "what the disk of sandbox %s is to hold cannot be read", i.id)
		}
		defer func() { _ = a.Close() }()
		return use(a)
	default:
		err = i.withReader(ctx, func(c *agent.Client) error { return copyDisk(ctx, c, use) })
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func copyDisk(ctx context.Context, c *agent.Client, use func(io.Reader) error) error {
	r, err := c.ReadDisk(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if err := use(r); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r) // it is whole only then
	return err
}

// withReader calls use with the agent of a pod over the claim of a sandbox that is down, in which nothing else is. It has the name of the
// sandbox's own, so that both are never there at once.
func (i *Instance) withReader(ctx context.Context, use func(*agent.Client) error) (err error) {
	if err := i.d.learn(ctx); err != nil {
		return err
	}
	if err := i.d.deny(ctx); err != nil {
		return err
	}
	image, err := i.d.agentImage(ctx)
	if err != nil {
		return err
	}
	private, public, err := handshake.NewPair()
	if err != nil {
		return fault.Wrap(fault.Internal, err, "a key cannot be made")
	}
	p, err := i.d.readerPod(i.id, image, public)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "a pod that reads a disk cannot be described")
	}
	ended := false
	defer func() {
		undo, done := i.d.finishing(ctx, undoPatience)
		defer done()
		remove := i.clearPod
		if ended { // nothing of it runs any more: its name is free at once
			remove = i.deletePod
		}
		if left := remove(undo); left != nil {
			i.d.log.Warn("a pod that a disk was read by is left behind; the next start removes it", "sandbox", i.id, "error", left)
			err = errors.Join(err, left)
		}
	}()
	begin, cancel := context.WithTimeoutCause(ctx, i.d.startPatience, fault.New(fault.Unavailable, "a pod that reads the disk of sandbox %s did not start within %v", i.id, i.d.startPatience).
		WithRemedy("see why by kubectl -n %s describe pod %s", i.d.space, objectName(i.id)))
	defer cancel()
	running, err := i.run(begin, p, nil)
	if err != nil {
		return err
	}
	key, err := i.agree(begin, private)
	if err != nil {
		return err
	}
	calls := i.dialer(running.Status.PodIP, key)
	defer func() { _ = calls.Close() }()
	c := agent.NewClient(calls.DialContext)
	if err := use(c); err != nil {
		return err
	}
	ended = c.End(ctx, 0) == nil // else its node ends it
	return nil
}

// dialer reaches the agent of a pod at an address.
func (i *Instance) dialer(address string, key *handshake.Key) *mux.Dialer {
	return mux.NewDialer((&handshake.Dialer{Dial: i.reachAt(address), Key: key, What: handshake.ManyCalls}).DialContext)
}

// readerLimits are those of a pod that reads a disk.
func readerLimits() sandbox.Limits { return sandbox.Limits{CPU: 1, MemoryMB: 256} }

// readerPod returns a pod with the agent alone, over a sandbox's claim.
func (d *Driver) readerPod(id sandbox.ID, image string, server handshake.Public) (*corev1.Pod, error) {
	p, err := d.pod(runtime.Spec{ID: id, Limits: readerLimits()}, references{image: image, agent: image}, server)
	if err != nil {
		return nil, err
	}
	args, err := agentArgs(server, "/log", "", 0)
	if err != nil {
		return nil, err
	}
	p.Annotations = map[string]string{annotationReader: "true"}
	p.Spec.InitContainers = nil
	p.Spec.Volumes = p.Spec.Volumes[:1] // the claim
	c := &p.Spec.Containers[0]
	c.Command, c.Args = []string{"/" + programName}, args
	// It finds room where a sandbox would not.
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	c.VolumeMounts = nil
	for name, path := range onDisk() {
		if path != insideLog {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: diskVolume, MountPath: path, SubPath: name})
		}
	}
	return p, nil
}

// fill fills the disk, if it is to be, by the agent of a pod in which nothing has run yet. verb is held.
func (i *Instance) fill(ctx context.Context, address string, key *handshake.Key) error {
	if !i.has(diskFile) {
		return nil
	}
	calls := i.dialer(address, key)
	defer func() { _ = calls.Close() }()
	return i.fillBy(ctx, agent.NewClient(calls.DialContext))
}

// fillBy fills the disk by an agent.
func (i *Instance) fillBy(ctx context.Context, c *agent.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, diskPatience, fault.New(fault.Unavailable, "the disk of sandbox %s was not filled within %v", i.id, diskPatience))
	defer cancel()
	a, err := i.d.openArchive(ctx, i.pendingFile())
	if err != nil {
		return fault.Wrap(fault.Internal, err, "what the disk of sandbox %s is to hold cannot be read", i.id)
	}
	defer func() { _ = a.Close() }()
	if err := c.FillDisk(ctx, a); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if fault.Is(err, fault.Invalid) {
			return fault.Wrap(fault.Invalid, err, "the disk of sandbox %s cannot be filled: %s", i.id, strings.TrimSpace(err.Error()))
		}
		return err
	}
	return i.kept()
}
