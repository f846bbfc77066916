// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// endPatience is how long an agent gets to end all processes that are killed, and itself.
const endPatience = 5 * time.Second

// Stop takes it down: its agent ends all processes and itself, and its pod is deleted.
func (i *Instance) Stop(ctx context.Context, grace time.Duration) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	i.noteLost(ctx)
	return i.stop(ctx, grace)
}

// stop is Stop, with verb held.
func (i *Instance) stop(ctx context.Context, grace time.Duration) error {
	i.mu.Lock()
	up, pod := i.up, i.pod
	i.stopping = up
	i.mu.Unlock()
	if !up {
		return nil
	}
	i.mark(stoppedFile)
	ctx, cancel := i.d.finishing(ctx, grace+undoPatience)
	defer cancel()
	ended := i.endAgent(ctx, grace)
	// Where nothing of it runs any more, its name is free at once. Else its node says when that is so.
	seconds := int64(1)
	if ended == nil {
		seconds = 0
	}
	switch err := kubeapi.Pods().Delete(ctx, i.d.api, i.d.space, objectName(i.id), pod, seconds); {
	case err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict): // it is gone, or another has its name
		return err
	case err == nil && ended != nil:
		i.d.log.Debug("a sandbox's agent did not end it; its node does", "sandbox", i.id, "error", ended)
		if err := i.awaitGone(ctx); err != nil {
			return err
		}
	}
	i.ends(runtime.Exit{Cause: sandbox.CauseStopped})
	return nil
}

// endAgent has the agent end all processes and itself.
func (i *Instance) endAgent(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+endPatience)
	defer cancel()
	return agent.NewClient(i.Dial).End(ctx, grace)
}

// awaitGone waits until the pod that is up is gone, or it is known to have ended.
func (i *Instance) awaitGone(ctx context.Context) error {
	for {
		i.mu.Lock()
		pod, node, gone, seen, heard := i.pod, i.node, i.gone == i.pod, i.seen, i.heard
		i.mu.Unlock()
		if seen != nil && seen.UID == pod {
			if _, over := exitOf(seen); over {
				return nil
			}
		}
		if gone {
			return nil
		}
		if i.d.nodes.isSilent(node) { // nobody there ends it, and it may go on
			i.mark(lostFile)
			if err := kubeapi.Pods().Delete(ctx, i.d.api, i.d.space, objectName(i.id), pod, 0); !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
				return err
			}
			return nil
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// clearPod deletes the pod that has the name of a sandbox that is down, and waits until the name is free.
func (i *Instance) clearPod(ctx context.Context) error {
	p, err := i.d.podOf(ctx, i.id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	seconds := int64(1)
	if _, over := exitOf(p); over {
		seconds = 0
	}
	if err := kubeapi.Pods().Delete(ctx, i.d.api, i.d.space, p.Name, p.UID, seconds); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	for {
		if seconds > 0 && i.d.nodes.isSilent(p.Spec.NodeName) { // nobody there ends it, and it may go on
			seconds = 0
			i.mark(lostFile)
			if err := kubeapi.Pods().Delete(ctx, i.d.api, i.d.space, p.Name, p.UID, 0); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		i.mu.Lock()
		gone, heard := i.gone == p.UID, i.heard
		i.mu.Unlock()
		if gone {
			return nil
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second): // that it is gone may have been told before it was asked for
			if now, err := i.d.podOf(ctx, i.id); fault.Is(err, fault.NotFound) || err == nil && now.UID != p.UID {
				return nil
			}
		}
	}
}

// Remove takes it down and deletes its claim, and with that its disk.
func (i *Instance) Remove(ctx context.Context) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return i.remove(ctx)
}

// remove is Remove, with verb held.
func (i *Instance) remove(ctx context.Context) error {
	i.mu.Lock()
	removed := i.removed
	i.mu.Unlock()
	if removed {
		return nil
	}
	if err := errors.Join(i.stop(ctx, 0), i.deletePod(ctx), i.deleteClaim(ctx)); err != nil {
		return err
	}
	if err := errors.Join(i.d.discard(i.pendingFile()), i.d.instances.RemoveAll(string(i.id))); err != nil {
		return fault.Wrap(fault.Internal, err, "the directory of sandbox %s cannot be removed", i.id)
	}
	i.mu.Lock()
	i.removed, i.last = true, runtime.Exit{Cause: sandbox.CauseStopped}
	i.mu.Unlock()
	i.d.forget(i)
	return nil
}

// deletePod deletes what an incomplete start left.
func (i *Instance) deletePod(ctx context.Context) error {
	p, err := i.d.podOf(ctx, i.id)
	if err == nil {
		seconds := int64(1)
		if p.Annotations[annotationReader] != "" || i.d.nodes.isSilent(p.Spec.NodeName) { // there is nothing in it that could end well, or nobody who ends it
			seconds = 0
		}
		err = kubeapi.Pods().Delete(ctx, i.d.api, i.d.space, p.Name, p.UID, seconds)
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) { // there is none, or it is another's
		return nil
	}
	return err
}

func (i *Instance) deleteClaim(ctx context.Context) error {
	c, err := kubeapi.Claims().Get(ctx, i.d.api, i.d.space, objectName(i.id))
	if err == nil && c.Labels[labelServer] == i.d.namespace {
		err = kubeapi.Claims().Delete(ctx, i.d.api, i.d.space, c.Name, c.UID, -1)
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
