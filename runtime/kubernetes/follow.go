// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// again is the first pause before the API server is asked again, and againMost the longest.
const (
	again     = 50 * time.Millisecond
	againMost = 5 * time.Second
)

// follow is the driver's goroutine: it has every instance learn what becomes of its pod, until Close. version is that of a
// list which was looked at; "": none was.
func (d *Driver) follow(version string) {
	pause := again
	for d.running.Err() == nil {
		var err error
		if version == "" {
			version, err = d.begin(d.running)
		}
		if err == nil {
			began := time.Now()
			err = d.hear(version)
			version = ""
			if time.Since(began) > againMost { // it was a good one
				pause = again
			}
		}
		if d.running.Err() != nil {
			return
		}
		if fault.Is(err, fault.PreconditionFailed) { // the watch expired
			continue
		}
		d.log.Debug("the API server's watch ended; it is begun again", "server", d.api.Host(), "error", err)
		select {
		case <-d.running.Done():
		case <-time.After(pause):
			pause = min(2*pause, againMost)
		}
	}
}

// hear takes what a watch tells, until it ends.
func (d *Driver) hear(version string) error {
	w, err := kubeapi.Pods().Watch(d.running, d.api, d.space, d.ours(), version)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		p, gone, err := w.Next()
		if err != nil {
			return err
		}
		d.tell(p, gone)
	}
}

// look has every instance learn what a list says of its pod, and returns the list's version.
func (d *Driver) look(ctx context.Context) (version string, err error) {
	began := time.Now()
	pods, version, err := kubeapi.Pods().List(ctx, d.api, d.space, d.ours())
	if err != nil {
		return "", err
	}
	if d.past.isOld(version, began) {
		return "", fault.New(fault.Unavailable, "the API server at %s answers from the past: what it lists is older than what it told", d.api.Host()).
			WithRemedy("see whether one of several API servers lags behind the others")
	}
	listed := map[types.UID]bool{}
	for n := range pods {
		listed[pods[n].UID] = true
		d.tell(&pods[n], false)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.known {
		i.missing(listed, began)
	}
	return version, nil
}

// tell passes a pod of the watch to its instance.
func (d *Driver) tell(p *corev1.Pod, gone bool) {
	d.past.saw(p.ResourceVersion)
	d.mu.Lock()
	i := d.known[sandbox.ID(p.Labels[labelSandbox])]
	d.mu.Unlock()
	if i != nil && p.Name == objectName(i.id) {
		i.hear(p, gone)
	}
}

// hear updates i with the state of a pod of its name; gone reports that the pod was deleted.
func (i *Instance) hear(p *corev1.Pod, gone bool) {
	if unready := i.update(p, gone); unready {
		i.d.suspect(p.Spec.NodeName)
	}
}

// update is hear, and reports whether the cluster takes the node of the pod that is up for lost. What follows from that is done without i.mu.
func (i *Instance) update(p *corev1.Pod, gone bool) (unready bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen = p
	if gone {
		i.gone = p.UID
	}
	close(i.heard)
	i.heard = make(chan struct{})
	if !i.up || p.UID != i.pod {
		return false
	}
	if exit, over := exitOf(p); over {
		i.endsLocked(exit)
		return false
	}
	if gone {
		i.endsLocked(runtime.Exit{Cause: sandbox.CauseHost, Detail: podDeleted})
		return false
	}
	return isUnready(p)
}

// missing takes that a list which was asked for at a time lacks all pods but those that are listed.
func (i *Instance) missing(listed map[types.UID]bool, began time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if seen := i.seen; seen != nil && !listed[seen.UID] {
		i.gone = seen.UID
		close(i.heard)
		i.heard = make(chan struct{})
	}
	if i.up && i.began.Before(began) && !listed[i.pod] {
		i.endsLocked(runtime.Exit{Cause: sandbox.CauseHost, Detail: podDeleted})
	}
}
