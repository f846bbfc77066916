// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

var _ runtime.Resizer = (*Instance)(nil)

// resizePatience is how long a node gets to change the limits of what runs on it.
const resizePatience = 30 * time.Second

// Resize sets the limits of the pod that is up; one that is down gets them with its next start.
func (i *Instance) Resize(ctx context.Context, l sandbox.Limits) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	i.mu.Lock()
	up, pod, seen := i.up, i.pod, i.seen
	i.mu.Unlock()
	if !up {
		return nil
	}
	want := i.d.resources(l)
	delete(want.Limits, corev1.ResourceEphemeralStorage) // which does not change while it runs
	delete(want.Requests, corev1.ResourceEphemeralStorage)
	if seen != nil && seen.UID == pod && asksFor(seen, want) && hasLimits(seen, want) { // as after a start of the server
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, resizePatience, fault.New(fault.Unavailable, "the node of sandbox %s did not change its limits within %v", i.id, resizePatience).
		WithRemedy("see kubectl -n %s describe pod %s", i.d.space, objectName(i.id)))
	defer cancel()
	patch := map[string]any{"metadata": map[string]any{"uid": pod}, "spec": map[string]any{"containers": []any{map[string]any{"name": Container, "resources": want}}}}
	got, err := kubeapi.Pods().Change(ctx, i.d.api, i.d.space, objectName(i.id), "resize", patch)
	if err != nil {
		return err
	}
	return i.awaitResize(ctx, got, want)
}

// awaitResize waits until a pod has limits, or its node says why not.
func (i *Instance) awaitResize(ctx context.Context, p *corev1.Pod, want corev1.ResourceRequirements) error {
	version := p.Generation
	for {
		i.mu.Lock()
		if i.seen != nil && i.seen.UID == p.UID {
			p = i.seen
		}
		up, heard := i.up, i.heard
		i.mu.Unlock()
		switch {
		case !up:
			return i.notRunning()
		case p.Generation >= version && hasLimits(p, want):
			return nil
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodResizePending && p.Generation >= version && c.ObservedGeneration >= version {
				return i.refusedResize(c)
			}
			if c.Type == corev1.PodResizeInProgress && c.Reason == corev1.PodReasonError && c.ObservedGeneration >= version {
				return i.refusedResize(c)
			}
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (i *Instance) refusedResize(c corev1.PodCondition) error {
	return fault.New(fault.Conflict, "the node of sandbox %s does not change its limits: %s", i.id, said(c.Reason, c.Message)).
		WithRemedy("ask for what the node has, or stop and start it")
}

// asksFor reports whether a pod asks its node for just that.
func asksFor(p *corev1.Pod, want corev1.ResourceRequirements) bool {
	at := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == Container })
	if at < 0 {
		return false
	}
	same := func(has, want corev1.ResourceList) bool {
		for name, q := range want {
			if h, ok := has[name]; !ok || h.Cmp(q) != 0 {
				return false
			}
		}
		return true
	}
	have := p.Spec.Containers[at].Resources
	return same(have.Limits, want.Limits) && same(have.Requests, want.Requests)
}

// hasLimits reports whether the container's node has given it the limits.
func hasLimits(p *corev1.Pod, want corev1.ResourceRequirements) bool {
	s := own(p)
	if s == nil || s.Resources == nil {
		return false
	}
	for name, q := range want.Limits {
		if has, ok := s.Resources.Limits[name]; !ok || has.Cmp(q) != 0 {
			return false
		}
	}
	return true
}
