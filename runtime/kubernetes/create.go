// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/agent"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// Bounds of what is waited for.
const (
	startPatience = 2 * time.Minute // a pod gets to run: its image may have to be pulled
	undoPatience  = 2 * time.Minute // what is taken back gets
	wordPatience  = 30 * time.Second
	claimPatience = 30 * time.Second // a claim gets to be bound
	maxMoves      = 3                // from nodes that are lost as it starts
)

// check refuses what this driver cannot do, before anything is made.
func (d *Driver) check(spec runtime.Spec) error {
	if !sandbox.ValidID(string(spec.ID)) {
		return fault.InvalidField("id", "%q is not a valid sandbox id", sandbox.Clip(string(spec.ID), 40))
	}
	return checkMounts(spec.Mounts)
}

// Create makes a claim and a pod.
func (d *Driver) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	if err := d.check(spec); err != nil {
		return nil, err
	}
	if spec.From != "" && (!sandbox.ValidID(string(spec.From)) || !d.hasSnapshot(spec.From)) {
		return nil, noSnapshot(spec.From)
	}
	images, err := d.ready(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	i := d.newInstance(spec.ID)
	if i.keepsRoot, err = d.newKeepsRoot(ctx); err != nil {
		return nil, err
	}
	end, err := i.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if d.register(i) != i {
		return nil, fault.New(fault.Exists, "sandbox %s exists", spec.ID)
	}
	// From here on a caller that goes away is answered when it is known what there is to take back.
	patience := d.startPatience
	if spec.From != "" {
		patience += diskPatience
	}
	work, cancel := d.finishing(ctx, patience)
	defer cancel()
	claim := d.claim(spec)
	if i.keepsRoot {
		claim.Annotations[annotationRoot] = "true"
	}
	if _, err = kubeapi.Claims().Create(work, d.api, d.space, claim); fault.Is(err, fault.Exists) {
		d.forget(i)
		return nil, fault.New(fault.Exists, "sandbox %s exists", spec.ID)
	}
	if err == nil && spec.From != "" {
		err = i.promiseSnapshot(spec.From)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		stop := context.AfterFunc(ctx, cancel)
		err = i.start(work, spec, images)
		stop()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		undoing, done := d.finishing(ctx, undoPatience)
		defer done()
		if undo := i.remove(undoing); undo != nil {
			d.log.Error("a sandbox that was not made is left behind", "sandbox", spec.ID, "error", undo)
			err = errors.Join(err, undo)
		}
		return nil, err
	}
	return i, nil
}

// ready returns the images of a sandbox's pod, where nodes can have them, or why no pod can be made now.
func (d *Driver) ready(ctx context.Context, img runtime.Image) (out references, err error) {
	if err := d.learn(ctx); err != nil {
		return out, err
	}
	if err := d.deny(ctx); err != nil {
		return out, err
	}
	if out.agent, err = d.agentImage(ctx); err == nil {
		out.image, err = d.imageOf(ctx, img)
	}
	return out, err
}

// Start brings it up again, by another pod on its claim.
func (i *Instance) Start(ctx context.Context, spec runtime.Spec) error {
	if err := errors.Join(i.d.check(spec), i.checkRoot()); err != nil {
		return err
	}
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	switch _, err := i.life(); {
	case err == nil:
		return fault.New(fault.State, "sandbox %s is running already", i.id)
	case !fault.Is(err, fault.State):
		return err
	}
	images, err := i.d.ready(ctx, spec.Image)
	if err != nil {
		return err
	}
	patience := i.d.startPatience
	if i.has(diskFile) {
		patience += diskPatience
	}
	work, cancel := context.WithTimeoutCause(ctx, patience, fault.New(fault.Unavailable, "sandbox %s did not start within %v", i.id, patience).
		WithRemedy("see why by kubectl -n %s describe pod %s", i.d.space, objectName(i.id)))
	defer cancel()
	if err := i.start(work, spec, images); err != nil {
		undo, done := i.d.finishing(ctx, undoPatience)
		defer done()
		return errors.Join(err, i.stop(undo, 0), i.clearPod(undo))
	}
	return nil
}

// start has a pod made, and waits until its agent answers. verb is held. After an error there may be a pod.
func (i *Instance) start(ctx context.Context, spec runtime.Spec, images references) error {
	if err := i.clear(); err != nil {
		return err
	}
	i.d.needNodes()
	defer i.d.interested.Add(-1)
	if len(spec.Mounts) > 0 && i.has(diskFile) { // volumes are in the way
		if err := i.withReader(ctx, func(c *agent.Client) error { return i.fillBy(ctx, c) }); err != nil {
			return err
		}
	}
	running, key, err := i.begins(ctx, spec, images)
	for moves := 0; errors.Is(err, errNodeLost) && moves < maxMoves; moves++ { // another node gets it, unless its volumes hold it on that one
		i.mark(lostFile)
		if err = i.clearPod(ctx); err == nil {
			running, key, err = i.begins(ctx, spec, images)
		}
	}
	if err == nil {
		err = i.keep(running.UID, key)
	}
	if err == nil {
		err = i.fill(ctx, running.Status.PodIP, key)
	}
	if err == nil {
		// Last: a start after one that was broken off before makes the root fresh once more, and no command has run.
		err = errors.Join(i.unmark(lostFile), i.unmark(freshFile))
	}
	if err != nil {
		return err
	}
	i.rises(running, key)
	_, err = i.life()
	return err
}

// begins has a pod made, and agrees on a key with its agent.
func (i *Instance) begins(ctx context.Context, spec runtime.Spec, images references) (*corev1.Pod, *handshake.Key, error) {
	private, public, err := handshake.NewPair()
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "a key cannot be made")
	}
	p, err := i.d.pod(spec, images, public)
	if err == nil && i.keepsRoot {
		err = keepRoot(p, i.has(freshFile))
	}
	if err == nil {
		err = i.number(p)
	}
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "the pod of sandbox %s cannot be described", i.id)
	}
	running, err := i.run(ctx, p, spec.Mounts)
	if err != nil {
		return nil, nil, err
	}
	key, err := i.agree(ctx, private)
	return running, key, err
}

// errNodeLost is of a pod whose node is silent before it runs.
var errNodeLost = errors.New("its node is not heard of")

// run has a pod made, and waits until it runs.
func (i *Instance) run(ctx context.Context, p *corev1.Pod, mounts []sandbox.Mount) (*corev1.Pod, error) {
	i.d.needNodes()
	defer i.d.interested.Add(-1)
	made, err := i.make(ctx, p, mounts)
	if err != nil {
		return nil, err
	}
	return i.await(ctx, made)
}

// make has a pod made. One of an earlier start is deleted first, which may take minutes.
func (i *Instance) make(ctx context.Context, p *corev1.Pod, mounts []sandbox.Mount) (*corev1.Pod, error) {
	made, err := i.tryMake(ctx, p, mounts)
	if fault.Is(err, fault.Exists) {
		if err = i.clearPod(ctx); err == nil && p.Annotations[annotationReader] == "" {
			err = i.number(p) // whether it waits may be known only now
		}
		if err == nil {
			made, err = i.tryMake(ctx, p, mounts)
		}
	}
	if err == nil {
		i.d.past.saw(made.ResourceVersion)
	}
	if err == nil && i.keepsRoot && p.Annotations[annotationReader] == "" {
		err = confined(made)
	}
	if fault.Is(err, fault.Unsupported) {
		i.d.forgetRoots()
	}
	return made, err
}

// agree returns the key that the agent has, by the public half that it wrote into its log.
func (i *Instance) agree(ctx context.Context, private *handshake.Private) (*handshake.Key, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wordPatience, fault.New(fault.Unavailable, "the agent of sandbox %s says nothing in its log within %v", i.id, wordPatience))
	defer cancel()
	line, err := i.d.api.FirstLine(ctx, i.d.space, objectName(i.id), Container)
	if err != nil {
		return nil, err
	}
	if err := i.later(line); err != nil {
		return nil, err
	}
	public, err := handshake.ParseLine(line)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s did not start: %s", i.id, sandbox.Clip(line, 200))
	}
	key, err := private.AgreeAsServer(public)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "no key can be agreed on with the agent of sandbox %s", i.id)
	}
	return key, nil
}

// await waits until a pod's container runs, and returns it so.
func (i *Instance) await(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	claims := time.NewTimer(i.d.claimPatience)
	defer claims.Stop()
	for {
		i.mu.Lock()
		if i.seen != nil && i.seen.UID == p.UID {
			p = i.seen
		}
		gone, heard := i.gone == p.UID, i.heard
		i.mu.Unlock()
		switch {
		case gone:
			return nil, fault.New(fault.Unavailable, "the pod of sandbox %s was deleted while it started", i.id)
		case runs(p) && p.Status.PodIP != "":
			return p, nil
		case slices.Contains(i.d.nodes.toAvoid(), p.Spec.NodeName):
			return nil, fault.Wrap(fault.Unavailable, errNodeLost, "the node %s, which the pod of sandbox %s is on, is not heard of", p.Spec.NodeName, i.id)
		}
		if err := i.hopeless(p); err != nil {
			return nil, err
		}
		select {
		case <-heard:
		case <-claims.C:
			if why := unbound(p); why != "" {
				what, remedy := i.pending(ctx, p)
				return nil, fault.New(fault.Unavailable, "%s was not made within %v: %s", what, i.d.claimPatience, why).WithRemedy("%s", remedy)
			}
		case <-ctx.Done():
			return nil, i.late(ctx, p)
		}
	}
}

// late is the error of a pod that is not there in time, with what the cluster says of it.
func (i *Instance) late(ctx context.Context, p *corev1.Pod) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	why := i.d.holds(ctx, p)
	if why == "" {
		why = waitsFor(p)
	}
	if why != "" {
		return fault.Wrap(fault.Unavailable, cause, "the pod of sandbox %s does not run: %s", i.id, why).
			WithRemedy("see kubectl -n %s describe pod %s", i.d.space, objectName(i.id))
	}
	return cause
}
