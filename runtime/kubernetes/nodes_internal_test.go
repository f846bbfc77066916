// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func leaseOf(name string, at time.Time) coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed, LeaseDurationSeconds: new(int32(40))}}
}

// Nodes have clocks of their own, which may be anywhere, and jump. What counts is when a renewal came here.
func TestClocksOfNodesThatDiffer(t *testing.T) {
	began := time.Now()
	var n nodes
	clocks := map[string]func(since time.Duration) time.Time{
		"behind":    func(since time.Duration) time.Time { return began.Add(since - 24*365*time.Hour) },
		"ahead":     func(since time.Duration) time.Time { return began.Add(since + 24*365*time.Hour) },
		"backwards": func(since time.Duration) time.Time { return began.Add(-since) },
		"dead":      func(time.Duration) time.Time { return began.Add(time.Hour) },
	}
	for since := time.Duration(0); since <= time.Minute; since += 10 * time.Second {
		for name, clock := range clocks {
			l := leaseOf(name, clock(since))
			n.renews(&l, began.Add(since))
		}
		late, _ := n.overdue(began.Add(since))
		for name, silent := range late {
			if name != "dead" || silent != (since > 30*time.Second) || since < 30*time.Second {
				t.Errorf("%s is late after %v, and silent: %v", name, since, silent)
			}
			if !n.doubt(name) {
				t.Errorf("%s is doubted by somebody else", name)
			}
			n.silences(name)
			n.done(name)
		}
	}
	if got := n.toAvoid(); !slices.Equal(got, []string{"dead"}) {
		t.Errorf("silent are %v", got)
	}
}

// While nobody hears of renewals, as with an API server that is away, there are none, and no node is to blame for it.
func TestRenewalsThatNobodyHeardOf(t *testing.T) {
	began := time.Now()
	var n nodes
	all := []coordinationv1.Lease{leaseOf("one", began), leaseOf("two", began)}
	n.lists(all, true, began)
	later := began.Add(time.Hour)
	n.lists(all, true, later)
	if late, next := n.overdue(later); len(late) > 0 || next != 22*time.Second {
		t.Errorf("late are %v, and the next after %v", late, next)
	}
	n.lists(all[:1], false, later.Add(time.Second)) // two was deleted, and a short break is no excuse
	if late, _ := n.overdue(later.Add(23 * time.Second)); !maps.Equal(late, map[string]bool{"one": false}) {
		t.Errorf("late are %v", late)
	}
}

// A pod that is told to be not ready has its node be looked at, which takes the lock of nodes. Who has that looks at sandboxes: so it is taken without a
// sandbox's own.
func TestAPodThatIsNotReadyHoldsNothingWhileItsNodeIsLookedAt(t *testing.T) {
	d := &Driver{}
	i := d.newInstance("abcdefgh12345678")
	i.up, i.pod, i.node = true, "uid", "one"
	running := corev1.ContainerStatus{Name: Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Spec: corev1.PodSpec{NodeName: "one"}, Status: corev1.PodStatus{
		ContainerStatuses: []corev1.ContainerStatus{running}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
	}}
	d.nodes.get("one").doubted = true // so that nobody begins to find out
	heard := i.heard
	d.nodes.mu.Lock()
	done := make(chan struct{})
	go func() { i.hear(p, false); close(done) }()
	<-heard // by now it has the lock, or has had it
	for limit := time.Now().Add(10 * time.Second); !i.mu.TryLock(); {
		if time.Now().After(limit) {
			t.Fatal("it waits for the lock of nodes with that of the sandbox")
		}
		runtime.Gosched()
	}
	i.mu.Unlock()
	d.nodes.mu.Unlock()
	<-done
}

// A pod is kept from nodes that are silent, unless all are: then it is the server that hears nothing.
func TestSilentNodesAreAvoided(t *testing.T) {
	began := time.Now()
	var n nodes
	n.lists([]coordinationv1.Lease{leaseOf("one", began), leaseOf("two", began)}, true, began)
	var spec corev1.PodSpec
	if n.avoid(&spec); spec.Affinity != nil {
		t.Errorf("got %+v", spec.Affinity)
	}
	if !n.silences("one") || n.silences("one") {
		t.Error("that it is silent is new once")
	}
	n.avoid(&spec)
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchFields) != 1 || terms[0].MatchFields[0].Values[0] != "one" {
		t.Errorf("got %+v", terms)
	}
	n.silences("two")
	spec = corev1.PodSpec{}
	if n.avoid(&spec); spec.Affinity != nil {
		t.Errorf("got %+v", spec.Affinity)
	}
	l := leaseOf("one", began.Add(time.Second))
	if r := n.renews(&l, began.Add(time.Minute)); !r.back || r.late || n.isSilent("one") {
		t.Errorf("got %+v", r)
	}
}
