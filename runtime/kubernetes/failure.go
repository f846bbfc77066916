// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// maxSaid bounds what is quoted of the cluster.
const maxSaid = 300

// podDeleted is why a sandbox is down whose pod the server did not delete.
const podDeleted = "its pod was deleted, and not by the server"

// own returns what the cluster says of the sandbox's container; nil: nothing yet.
func own(p *corev1.Pod) *corev1.ContainerStatus {
	at := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == Container })
	if at < 0 {
		return nil
	}
	return &p.Status.ContainerStatuses[at]
}

// runs reports whether the sandbox's container runs.
func runs(p *corev1.Pod) bool {
	s := own(p)
	return s != nil && s.State.Running != nil
}

// exitOf returns why a pod is down, or that it is not.
func exitOf(p *corev1.Pod) (runtime.Exit, bool) {
	if p.Status.Reason != "" && (p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodUnknown) { // Evicted, NodeLost, Preempted and the like
		return runtime.Exit{Cause: sandbox.CauseHost, Detail: said(p.Status.Reason, p.Status.Message)}, true
	}
	s := own(p)
	if s == nil || s.State.Terminated == nil {
		over := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
		return runtime.Exit{Cause: sandbox.CauseHost, Detail: "its pod ended"}, over
	}
	t := s.State.Terminated
	switch {
	case t.Reason == "OOMKilled":
		return runtime.Exit{Cause: sandbox.CauseOOM, Detail: "the node's kernel killed its process 1 for lack of memory"}, true
	case p.DeletionTimestamp != nil:
		return runtime.Exit{Cause: sandbox.CauseHost, Detail: podDeleted}, true
	case t.Signal != 0:
		return runtime.Exit{Cause: sandbox.CauseKilled, Detail: fmt.Sprintf("its process 1 ended by signal %d", t.Signal)}, true
	}
	return runtime.Exit{Cause: sandbox.CauseKilled, Detail: fmt.Sprintf("its process 1 ended with code %d", t.ExitCode)}, true
}

// lastWords returns what the sandbox's container wrote last, where it ended; "": nothing, or nobody knows.
func lastWords(p *corev1.Pod) string {
	if s := own(p); s != nil && s.State.Terminated != nil {
		return strings.TrimSpace(s.State.Terminated.Message)
	}
	return ""
}

func said(reason, message string) string {
	if message == "" {
		return reason
	}
	return sandbox.Clip(reason+": "+message, maxSaid)
}

// hopeless returns why a pod will never run; nil: it may.
func (i *Instance) hopeless(p *corev1.Pod) error {
	if err := i.blocked(p); err != nil {
		return err
	}
	if exit, over := exitOf(p); over {
		return fault.New(fault.Unavailable, "the pod of sandbox %s ended as it started: %s", i.id, said(exit.Detail, lastWords(p))).
			WithRemedy("see kubectl -n %s logs %s, and kubectl describe", i.d.space, objectName(i.id))
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := s.State.Waiting
		if w == nil {
			continue
		}
		switch {
		case noImage(w.Reason):
			return fault.New(fault.Unavailable, "the nodes of the cluster have no image for sandbox %s, and cannot pull it: %s", i.id, said(w.Reason, w.Message)).
				WithRemedy("set kubernetes.registry to one that the nodes can pull from, or import the image on the nodes: docs/kubernetes.md")
		case noStart(w.Reason):
			return fault.New(fault.Unavailable, "the container of sandbox %s does not start: %s", i.id, said(w.Reason, w.Message)).
				WithRemedy("see kubectl -n %s describe pod %s", i.d.space, objectName(i.id))
		}
	}
	for _, c := range p.Status.Conditions {
		if !unschedulable(c) {
			continue
		}
		if err := i.elsewhere(c.Message); err != nil {
			return err
		}
		if unbound(p) == "" {
			return fault.New(fault.Exhausted, "no node of the cluster takes sandbox %s: %s", i.id, sandbox.Clip(c.Message, maxSaid)).
				WithRemedy("delete sandboxes, ask for less, set kubernetes.overcommit, or add nodes")
		}
	}
	return nil
}

// noImage reports whether a container waits because its node has no image for it.
func noImage(reason string) bool {
	return slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}, reason)
}

// noStart reports whether a container waits because its node cannot start it.
func noStart(reason string) bool {
	return slices.Contains([]string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}, reason)
}

// unschedulable reports whether a condition is that no node takes a pod.
func unschedulable(c corev1.PodCondition) bool {
	return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// unbound returns what the cluster says of a pod whose claim has no volume yet; "": it says nothing.
func unbound(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		// The scheduler names claims that are not bound, and in small letters claims and volumes that it has not heard of yet.
		if unschedulable(c) && strings.Contains(strings.ToLower(c.Message), "persistentvolume") {
			return sandbox.Clip(c.Message, maxSaid)
		}
	}
	return ""
}

// waitsFor says in the cluster's words what a pod waits for; "": it does not say.
func waitsFor(p *corev1.Pod) string {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && w.Reason != "" {
			return said(w.Reason, w.Message)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return sandbox.Clip(c.Message, maxSaid)
		}
	}
	return ""
}
