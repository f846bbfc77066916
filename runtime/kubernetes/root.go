// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// A sandbox keeps its root where its agent makes an overlay over the image and its claim the root, before anything else runs. That takes
// the right to mount, in a user namespace: the agent drops it. Which of its sandboxes do is noted on their claims.

const (
	insideRoot = "/.sandpit/root" // on the claim: what was changed of the root; nothing inside leads there
	rootDir    = "root"           // its name on the claim
)

// mountRights are the capabilities that an agent has which makes the overlay, and then nobody.
func mountRights() []corev1.Capability {
	return []corev1.Capability{"SYS_ADMIN", "SYS_CHROOT", "SETPCAP"}
}

// freshFile is noted of a sandbox whose root is the image again at its next start. What its disk is to hold is noted, too.
const freshFile = "fresh"

// freshen notes it. It is on the disk then.
func (i *Instance) freshen() error {
	err := i.d.instances.WriteFile(string(i.id)+"/"+freshFile, nil, 0o600)
	if err == nil {
		err = i.d.syncDir(instancesDir + "/" + string(i.id))
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "that the root of sandbox %s is to be the image cannot be kept", i.id)
	}
	return nil
}

// keepRoot makes a pod of a sandbox one that keeps its root, from the image on if it is to be fresh.
func keepRoot(p *corev1.Pod, fresh bool) error {
	c := &p.Spec.Containers[0]
	var config agentConfig
	if err := json.Unmarshal([]byte(c.Args[1]), &config); err != nil {
		return err
	}
	config.Overlay, config.FreshOverlay = insideRoot, fresh
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	c.Args[1] = string(text)
	users := false
	p.Spec.HostUsers = &users
	c.SecurityContext.Capabilities.Add = append(c.SecurityContext.Capabilities.Add, mountRights()...)
	// The profile that nodes with AppArmor have for containers refuses all mounts.
	c.SecurityContext.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError // why it did not begin
	changes := corev1.VolumeMount{Name: diskVolume, MountPath: insideRoot, SubPath: rootDir}
	c.VolumeMounts = append(c.VolumeMounts, changes)
	for n := range p.Spec.InitContainers { // what is in the way in changes that are about to be removed is in nobody's way
		if m := &p.Spec.InitContainers[n]; m.Name == placesContainer && !fresh {
			m.VolumeMounts = append(m.VolumeMounts, changes)
		}
	}
	return nil
}

// confined returns an error where the cluster would run a pod that may mount without a user namespace: some drop the field.
func confined(p *corev1.Pod) error {
	if p.Spec.HostUsers == nil || *p.Spec.HostUsers {
		return fault.New(fault.Unsupported, "the cluster drops hostUsers from pods: it has no user namespaces").WithRemedy("%s", withoutOverlay)
	}
	return nil
}

const withoutOverlay = "set kubernetes.root to image: then what is written outside of /workspace, /home and /artifacts is lost with each stop"

var errImageRoot = errors.New("the configuration says so")

// rootsKept says why new sandboxes do not keep their roots; nil: they do. What is asked is whether such a pod would be admitted; nothing is made.
func (d *Driver) rootsKept(ctx context.Context) error {
	switch {
	case d.o.ImageRoot:
		return fault.Wrap(fault.Unsupported, errImageRoot, "what is written outside of %s is lost with each stop: kubernetes.root is image", strings.Join(diskDirs(), ", ")).
			WithRemedy("set kubernetes.root to auto")
	case !d.o.Users:
		return fault.New(fault.Unsupported, "what is written outside of %s is lost with each stop: pods have no user namespaces, which they would need to mount a root of their own", strings.Join(diskDirs(), ", ")).
			WithRemedy("set kubernetes.user_namespaces, if the nodes can do that (Linux 6.3, containerd 2.0), in a namespace at the level privileged of PodSecurity")
	}
	p, err := d.pod(runtime.Spec{ID: sandbox.NewID(), Limits: sandbox.Limits{CPU: 0.1, MemoryMB: 64}}, references{d.agent, d.agent}, handshake.Public{})
	if err == nil {
		err = keepRoot(p, false)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "a pod that keeps its root cannot be described")
	}
	got, err := kubeapi.Pods().Try(ctx, d.api, d.space, p)
	switch {
	case err == nil:
		err = confined(got)
	case fault.Is(err, fault.Exhausted): // there is no room now
		err = nil
	case fault.Is(err, fault.Unavailable) && !strings.Contains(err.Error(), "forbidden"):
		return err
	default:
		err = fault.Wrap(fault.Unsupported, err, "what is written outside of %s is lost with each stop: the namespace %s admits no pod that may mount in its user namespace: %s",
			strings.Join(diskDirs(), ", "), d.space, sandbox.Clip(fault.As(err).Message, maxSaid)).
			WithRemedy("label it pod-security.kubernetes.io/enforce: privileged, with deploy/kubernetes/admission.yaml beside it, which lets in nothing but sandboxes")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keepsRoots, d.askedRoots = err == nil, true
	return err
}

// newKeepsRoot reports whether a sandbox that is made now keeps its root. That is asked once, and again with each Probe.
func (d *Driver) newKeepsRoot(ctx context.Context) (bool, error) {
	d.mu.Lock()
	asked, keeps := d.askedRoots, d.keepsRoots
	d.mu.Unlock()
	if asked {
		return keeps, nil
	}
	err := d.rootsKept(ctx)
	if err != nil && !fault.Is(err, fault.Unsupported) {
		return false, err
	}
	return err == nil, nil
}

// forgetRoots has it asked again: the cluster refused a pod.
func (d *Driver) forgetRoots() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.askedRoots = false
}

// checkRoot refuses to start what keeps its root without it.
func (i *Instance) checkRoot() error {
	if !i.keepsRoot || i.d.o.Users && !i.d.o.ImageRoot {
		return nil
	}
	return fault.New(fault.Unsupported, "sandbox %s keeps its root on its claim, and pods are not to mount now", i.id).
		WithRemedy("set kubernetes.user_namespaces, and kubernetes.root to auto, or delete it")
}
