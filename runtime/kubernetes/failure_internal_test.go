// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/fault"
)

// A scheduler that has not heard of a claim yet says so of a pod that runs a moment later.
func TestAPodWhoseClaimIsNotKnownYetMayRun(t *testing.T) {
	i := &Instance{d: &Driver{}, id: "abcdefgh12345678"}
	for message, hopeless := range map[string]bool{
		`0/1 nodes are available: persistentvolumeclaim "sandbox-x" not found. not found`:                false,
		`0/1 nodes are available: persistentvolume "pvc-x" not found. not found`:                         false,
		`0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found`:           false,
		`0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No victims`: true,
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		}}}}
		if err := i.hopeless(p); (err != nil) != hopeless || err != nil && !fault.Is(err, fault.Exhausted) {
			t.Errorf("%q: %v", message, err)
		}
	}
}
