// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

const (
	proveEvery    = time.Hour
	retryProof    = time.Minute     // after one that failed
	retryTry      = 5 * time.Second // after one that was none
	provePatience = 2 * time.Minute // its image may have to be pulled
	probeKept     = "kept"          // the pod that the policy is for
	probeFree     = "free"          // the one that no policy of ours is for
	exitKept      = 3               // of the agent's program, where the server was not reached
	exitOwnStack  = 8               // is added where the pod's network is not the kernel's
)

// proveAgain is the driver's goroutine that has the cluster's network proven, until Close.
func (d *Driver) proveAgain() {
	for first := true; d.running.Err() == nil; first = false {
		err := d.prove(d.running)
		if d.running.Err() != nil {
			return
		}
		pause := d.o.ProveEvery
		if err != nil {
			pause = min(pause, retryProof)
			if !fault.Is(err, fault.Unsupported) {
				pause = min(pause, retryTry)
			}
			d.log.Error("a pod does not prove that the cluster's network keeps to policies; it is tried again", "error", err)
		}
		d.proves(err)
		if first {
			close(d.tried)
		}
		select {
		case <-d.running.Done():
		case <-time.After(pause):
		}
	}
}

// proves takes what came of a try. One that could not be made says nothing against the last proof.
func (d *Driver) proves(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		d.proof, d.provenAt = nil, now
	case fault.Is(err, fault.Unsupported) || now.Sub(d.provenAt) > 2*d.o.ProveEvery:
		d.proof, d.provenAt = err, time.Time{}
	}
}

// proven returns why it is not proven that the network keeps to policies, once that was tried.
func (d *Driver) proven(ctx context.Context) error {
	if d.o.ProveEvery <= 0 {
		return nil
	}
	select {
	case <-d.tried:
		return d.lastProof()
	case <-d.running.Done():
		return errClosed()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lastProof returns why it is not proven, as far as it is known now.
func (d *Driver) lastProof() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.proof
}

// prove has two pods connect to the API server: one that the policy is for, which must not get there, and one that it is not for, which
// must, so that it is the policy that keeps the other.
func (d *Driver) prove(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, provePatience, fault.New(fault.Unavailable, "the pods that prove it did not end within %v", provePatience).
		WithRemedy("see kubectl -n %s get pods -l %s=%s", d.space, labelProbe, d.namespace))
	defer cancel()
	reached, err := d.probes(ctx)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "it could not be tried whether the cluster's network keeps to policies: %s", fault.As(err).Message).WithRemedy("%s", fault.As(err).Remedy)
	}
	switch {
	case reached[probeKept]:
		return fault.New(fault.Unsupported, "the cluster's network does not keep to policies: a pod reached the API server under one that lets nothing out").
			WithRemedy("have the cluster's network enforce NetworkPolicy, as Calico, Cilium and others do")
	case !reached[probeFree]:
		return fault.New(fault.Unsupported, "nothing proves that the cluster's network keeps to policies: a pod that none of the server's is for did not reach the API server either").
			WithRemedy("let pods with the label %s: %s connect to the API server", labelProbe, d.namespace)
	}
	return nil
}

// probes runs both pods, and returns which of them reached the API server.
func (d *Driver) probes(ctx context.Context) (reached map[string]bool, err error) {
	if err := errors.Join(d.learn(ctx), d.deny(ctx)); err != nil {
		return nil, err
	}
	image, err := d.agentImage(ctx)
	if err != nil {
		return nil, err
	}
	// What an earlier server left has the same names.
	made, version, err := kubeapi.Pods().List(ctx, d.api, d.space, labelProbe+"="+d.namespace)
	if err != nil {
		return nil, err
	}
	if err := d.deleteProbes(ctx, made); err != nil {
		return nil, err
	}
	made = nil
	defer func() {
		work, done := d.finishing(ctx, undoPatience)
		defer done()
		err = errors.Join(err, d.deleteProbes(work, made))
	}()
	for _, which := range []string{probeKept, probeFree} {
		p, err := kubeapi.Pods().Create(ctx, d.api, d.space, d.probe(which, image))
		if err != nil {
			return nil, err
		}
		made = append(made, *p)
	}
	w, err := kubeapi.Pods().Watch(ctx, d.api, d.space, labelProbe+"="+d.namespace, version)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	for reached = map[string]bool{}; len(reached) < len(made); {
		p, gone, err := w.Next()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, err
		}
		for n, which := range []string{probeKept, probeFree} {
			if p.UID != made[n].UID {
				continue
			}
			over, yes, err := d.outcomeOf(p)
			if gone && !over {
				err = fault.New(fault.Unavailable, "the pod %s was deleted", p.Name)
			}
			if err != nil {
				return nil, err
			}
			if over {
				reached[which] = yes
			}
		}
	}
	return reached, nil
}

// outcomeOf returns whether a probe's pod has ended, and whether it reached the API server. It keeps whose network stack pods have.
func (d *Driver) outcomeOf(p *corev1.Pod) (over, reached bool, err error) {
	for _, s := range p.Status.ContainerStatuses {
		switch t, w := s.State.Terminated, s.State.Waiting; {
		case t != nil && (t.ExitCode&^exitOwnStack == 0 || t.ExitCode&^exitOwnStack == exitKept):
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ownStack = t.ExitCode&exitOwnStack != 0
			return true, t.ExitCode&^exitOwnStack == 0, nil
		case t != nil:
			return true, false, fault.New(fault.Unavailable, "the pod %s ended with code %d: %s", p.Name, t.ExitCode, said(t.Reason, t.Message))
		case w != nil && (noImage(w.Reason) || noStart(w.Reason)):
			return false, false, fault.New(fault.Unavailable, "the pod %s does not start: %s", p.Name, said(w.Reason, w.Message))
		}
	}
	for _, c := range p.Status.Conditions {
		if unschedulable(c) {
			return false, false, fault.New(fault.Unavailable, "no node takes the pod %s: %s", p.Name, sandbox.Clip(c.Message, maxSaid))
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return true, false, fault.New(fault.Unavailable, "the pod %s failed: %s", p.Name, said(p.Status.Reason, p.Status.Message))
	}
	return false, false, nil
}

func (d *Driver) deleteProbes(ctx context.Context, pods []corev1.Pod) (err error) {
	for _, p := range pods {
		if one := kubeapi.Pods().Delete(ctx, d.api, d.space, p.Name, p.UID, 0); !fault.Is(one, fault.NotFound) && !fault.Is(one, fault.Conflict) {
			err = errors.Join(err, one)
		}
	}
	return err
}

// probe returns a pod that tries to reach the API server, without any rights.
func (d *Driver) probe(which, image string) *corev1.Pod {
	no, yes, user, grace, most := false, true, int64(65534), int64(0), int64(provePatience/time.Second)
	try, labels := "last", map[string]string{labelProbe: d.namespace, labelServer: d.namespace}
	if which == probeFree {
		try = "first"
		delete(labels, labelServer) // which the policy goes by
	}
	var known []string // pods are told another address of the cluster's own
	if at, err := netip.ParseAddrPort(d.api.Host()); err == nil {
		known = []string{at.String()}
	}
	size := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(100, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(32<<20, resource.BinarySI)}
	least := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(1, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(1<<20, resource.BinarySI)}
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "sandpit-probe-" + d.namespace + "-" + which, Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &most,
			SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "probe", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: append([]string{"/" + programName, "reach", try}, known...),
				Resources: corev1.ResourceRequirements{Limits: size, Requests: least}, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext: &corev1.SecurityContext{
					RunAsUser: &user, RunAsGroup: &user, RunAsNonRoot: &yes, Privileged: &no, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	d.isolate(&p.Spec)
	return p
}
