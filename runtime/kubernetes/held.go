// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// eventPatience is how long events get to be read, of a pod that is given up.
const eventPatience = 5 * time.Second

// elsewhere returns the error of a pod that no node takes since its disk is one of another node's own; nil: it is not that.
func (i *Instance) elsewhere(said string) error {
	if !strings.Contains(said, "volume node affinity conflict") && !strings.Contains(said, "didn't match PersistentVolume's node affinity") {
		return nil
	}
	return fault.New(fault.Unavailable, "the disk of sandbox %s is on a node of the cluster that does not take it now, and cannot be had on another: %s", i.id, sandbox.Clip(said, maxSaid)).
		WithRemedy("bring that node back, or see kubectl get pv which it is; a class whose volumes are of no node lets sandboxes start elsewhere")
}

// holds returns what the cluster says of who keeps a pod from its disk; "": it does not say, or the server's account may not read it.
func (d *Driver) holds(ctx context.Context, p *corev1.Pod) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventPatience)
	defer cancel()
	events, err := d.api.Events(ctx, d.space, p.UID)
	if err != nil {
		d.log.Debug("the events of a pod that does not run are not read", "pod", p.Name, "error", err)
		return ""
	}
	at := slices.IndexFunc(events, func(e corev1.Event) bool { return e.Reason == "FailedAttachVolume" || e.Reason == "FailedMount" })
	if at < 0 {
		return ""
	}
	return said(events[at].Reason, events[at].Message)
}

// eventsRight is the right by which a start's error says who holds its disk.
func eventsRight() kubeapi.Right { return kubeapi.Right{Verb: "list", Resource: "events"} }
