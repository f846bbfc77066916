// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/rand"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/traffic"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

var _ runtime.Networker = (*Instance)(nil)

const (
	// stepPatience bounds the container that makes sockets, from when it is asked for on: its node has the image already.
	stepPatience = time.Minute
	// lastWord is how long an agent gets to say what a step that has ended told it.
	lastWord = time.Second
)

// Steer has the agent bring the pod's traffic, over a connection of its own: calls do not wait for it. The sockets that the traffic comes to
// are made by a step, a container that the pod gets for it. What they do not take, the policy keeps in the pod.
func (i *Instance) Steer(ctx context.Context) (runtime.Traffic, error) {
	if _, err := i.life(); err != nil {
		return nil, err
	}
	i.mu.Lock()
	key, pod, address := i.key, i.pod, i.address
	i.mu.Unlock()
	if key == nil {
		return nil, i.keyLost()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stepPatience, fault.New(fault.Unavailable, "the traffic of sandbox %s was not brought to the server within %v", i.id, stepPatience).
		WithRemedy("see kubectl -n %s describe pod %s", i.d.space, objectName(i.id)))
	defer cancel()
	if err := i.d.proven(ctx); err != nil {
		return nil, i.orDown(ctx, err)
	}
	if err := i.d.foreignStack(); err != nil {
		return nil, err
	}
	nc, err := (&handshake.Dialer{Dial: i.reachAt(address), Key: key, What: handshake.Traffic}).DialContext(ctx)
	if err != nil {
		return nil, i.orDown(ctx, err)
	}
	t, err := traffic.Begin(ctx, nc, func(ctx context.Context, socket string) error { return i.step(ctx, pod, address, socket) })
	if err != nil {
		return nil, i.orDown(ctx, err)
	}
	return carried{t}, nil
}

// orDown returns err, or that the sandbox is down, or why ctx is done, where that is why.
func (i *Instance) orDown(ctx context.Context, err error) error {
	if _, down := i.life(); down != nil {
		return down
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
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

// step has a container of the pod make the sockets that its traffic comes to. It is an ephemeral one, so that pods which never have a network
// never have a container with CAP_NET_ADMIN, and so that there can be another when the sockets are used up. It ends by itself.
func (i *Instance) step(ctx context.Context, pod types.UID, address, socket string) error {
	own, err := netip.ParseAddr(address)
	if err != nil {
		return fault.New(fault.Unavailable, "the pod of sandbox %s has the address %q", i.id, sandbox.Clip(address, 60))
	}
	p, err := i.d.podOf(ctx, i.id)
	if err != nil {
		return err
	}
	name := "step-" + strings.ToLower(rand.Text()[:10])
	c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(stepContainer(name, agentImageOf(p), socket, netip.AddrPortFrom(own, agentPort)))}
	patch := map[string]any{"metadata": map[string]any{"uid": pod}, "spec": map[string]any{"ephemeralContainers": []any{c}}}
	if _, err := kubeapi.Pods().Change(ctx, i.d.api, i.d.space, objectName(i.id), "ephemeralcontainers", patch); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for {
		i.mu.Lock()
		seen, heard := i.seen, i.heard
		i.mu.Unlock()
		if seen != nil && seen.UID == pod {
			if err := i.stepFailed(seen, name); err != nil {
				// What it could say it said to the agent, which may be about to tell.
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(lastWord):
				}
				return err
			}
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return nil // the agent has them, or nobody wants them
		}
	}
}

// stepContainer is what runs the step.
func stepContainer(name, image, socket string, reached netip.AddrPort) corev1.Container {
	no, yes, root := false, true, int64(0)
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/" + programName, "step", socket, reached.String()}, Env: agentEnv(),
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: &root, RunAsGroup: &root, Privileged: &no, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// agentImageOf returns the reference of the image that a pod has its agent of.
func agentImageOf(p *corev1.Pod) string {
	for _, v := range p.Spec.Volumes {
		if v.Name == agentVolume && v.Image != nil {
			return v.Image.Reference
		}
	}
	for _, c := range p.Spec.InitContainers {
		if c.Name == agentVolume {
			return c.Image
		}
	}
	return ""
}

// stepFailed returns why a step has made no sockets, or will make none; nil: it may.
func (i *Instance) stepFailed(p *corev1.Pod, name string) error {
	at := slices.IndexFunc(p.Status.EphemeralContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	s := p.Status.EphemeralContainerStatuses[at].State
	why := ""
	switch {
	case s.Terminated != nil && s.Terminated.ExitCode != 0:
		why = said(s.Terminated.Reason, strings.TrimSpace(s.Terminated.Message))
	case s.Waiting != nil && (noImage(s.Waiting.Reason) || noStart(s.Waiting.Reason)):
		why = said(s.Waiting.Reason, s.Waiting.Message)
	default:
		return nil
	}
	return fault.New(fault.Unavailable, "the container that brings the traffic of sandbox %s to its agent made no sockets: %s", i.id, why).
		WithRemedy("see kubectl -n %s describe pod %s, and whether the runtime class of the pod has the kernel's network stack", i.d.space, objectName(i.id))
}

// foreignStack says that pods have no network that a step could bring to the server; nil: they have, as far as is known.
func (d *Driver) foreignStack() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ownStack {
		return nil
	}
	return fault.New(fault.Unsupported, "pods of the runtime class %q have a network stack of their own, as gVisor's, whose traffic cannot be brought to the server", d.o.RuntimeClass).
		WithRemedy("use sandboxes without a network, or a runtime whose class has the kernel's")
}

// networks says why sandboxes can have no network in this namespace; nil: they can. What is asked is whether a pod would be admitted that has a
// container as the step's; nothing is made.
func (d *Driver) networks(ctx context.Context) error {
	if err := d.foreignStack(); err != nil {
		return err
	}
	may, err := d.api.May(ctx, d.space, stepRight())
	if err != nil {
		return err
	}
	if !may {
		return fault.New(fault.Unsupported, "the server's account may not, in the namespace %s: %s", d.space, stepRight()).
			WithRemedy("grant it by a role and a binding: docs/kubernetes.md has them")
	}
	p, err := d.pod(runtime.Spec{ID: sandbox.NewID(), Limits: sandbox.Limits{CPU: 0.1, MemoryMB: 64}}, references{d.agent, d.agent}, handshake.Public{})
	if err != nil {
		return err
	}
	step := stepContainer("step", d.agent, "", netip.AddrPort{})
	step.Resources = p.Spec.Containers[0].Resources
	p.Spec.Containers = append(p.Spec.Containers, step)
	switch _, err := kubeapi.Pods().Try(ctx, d.api, d.space, p); {
	case err == nil, fault.Is(err, fault.Exhausted): // there is no room now
		return nil
	case fault.Is(err, fault.Unavailable) && !strings.Contains(err.Error(), "forbidden"):
		return err
	default:
		return fault.Wrap(fault.Unsupported, err, "the namespace %s admits no container that may configure the network of its pod: %s", d.space, sandbox.Clip(fault.As(err).Message, maxSaid)).
			WithRemedy("label it pod-security.kubernetes.io/enforce: privileged, or use sandboxes without a network")
	}
}

// stepRight is what only sandboxes with a network take.
func stepRight() kubeapi.Right {
	return kubeapi.Right{Verb: "patch", Resource: "pods", Subresource: "ephemeralcontainers"}
}
