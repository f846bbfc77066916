// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodes is what is known of the cluster's nodes by the leases that their kubelets renew.
type nodes struct {
	mu       sync.Mutex
	all      map[string]*node
	patience time.Duration // how long a renewal may take; 0: as the lease has it
}

// node is what is known of one. A kubelet renews its lease four times in the lease's duration.
type node struct {
	renewal  metav1.MicroTime // as the kubelet wrote it, by the node's own clock: it is compared with itself alone
	heard    time.Time        // when that came here; zero: no lease was seen
	patience time.Duration    // how long the next may take
	silent   bool             // it took longer, and the API server says so, too
	doubted  bool             // a goroutine finds out whether it is lost
}

// defaultLease is the duration of a lease that names none.
const defaultLease = 40 * time.Second

// patienceOf is a little more than two renewals.
func (n *nodes) patienceOf(l *coordinationv1.Lease) time.Duration {
	if n.patience > 0 {
		return n.patience
	}
	duration := defaultLease
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		duration = time.Duration(*s) * time.Second
	}
	return duration * 11 / 20
}

// renewalOf is when a lease says that it was renewed.
func renewalOf(l *coordinationv1.Lease) metav1.MicroTime {
	if l.Spec.RenewTime == nil {
		return metav1.MicroTime{}
	}
	return *l.Spec.RenewTime
}

func (n *nodes) get(name string) *node {
	if n.all == nil {
		n.all = make(map[string]*node)
	}
	one := n.all[name]
	if one == nil {
		one = &node{}
		n.all[name] = one
	}
	return one
}

// lists takes all leases as a list has them. deaf: for a while nobody heard of renewals, so that all nodes have the time for another one.
func (n *nodes) lists(leases []coordinationv1.Lease, deaf bool, now time.Time) {
	there := map[string]bool{}
	for i := range leases {
		there[leases[i].Name] = true
		n.renews(&leases[i], now)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, one := range n.all {
		if !there[name] && !one.doubted {
			delete(n.all, name)
		} else if deaf {
			one.heard = now
		}
	}
}

// renewal is what a lease tells.
type renewal struct {
	late bool // it took longer than it may
	back bool // it was silent before
}

// renews takes a lease.
func (n *nodes) renews(l *coordinationv1.Lease, now time.Time) (r renewal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.get(l.Name)
	one.patience = n.patienceOf(l)
	if at := renewalOf(l); one.heard.IsZero() || !at.Equal(&one.renewal) {
		r.back = one.silent
		one.renewal, one.heard, one.silent = at, now, false
	}
	r.late = now.Sub(one.heard) > one.patience
	return r
}

// leaves takes that a node's lease was deleted, as it is when the node is.
func (n *nodes) leaves(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, name)
}

// overdue returns the nodes that nobody doubts and whose renewals are late, with whether that is known already (silent), and when there may be another.
func (n *nodes) overdue(now time.Time) (late map[string]bool, next time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	late, next = map[string]bool{}, defaultLease
	for name, one := range n.all {
		left := one.patience - now.Sub(one.heard)
		switch {
		case one.doubted || one.heard.IsZero():
		case one.silent || left <= 0:
			late[name] = one.silent
		default:
			next = min(next, left)
		}
	}
	return late, next
}

// doubt reports whether the caller is to find out whether a node is lost, and is to call done then; false if another goroutine does.
func (n *nodes) doubt(name string) (alone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.get(name)
	if one.doubted {
		return false
	}
	one.doubted = true
	return true
}

func (n *nodes) done(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one := n.all[name]; one != nil {
		one.doubted = false
		if one.heard.IsZero() {
			delete(n.all, name)
		}
	}
}

// silences takes that the API server has no renewal of a node's lease either, and reports whether that is new.
func (n *nodes) silences(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[name]
	if one == nil || one.silent {
		return false
	}
	one.silent = true
	return true
}

// isSilent reports whether a node's kubelet is not heard of, so that it ends no pods.
func (n *nodes) isSilent(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[name]
	return one != nil && one.silent
}

// silentSince returns for how long a node has not been heard of.
func (n *nodes) silentSince(name string, now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one := n.all[name]; one != nil && !one.heard.IsZero() {
		return now.Sub(one.heard)
	}
	return 0
}

// toAvoid returns the names of nodes that are silent; none where there is no other.
func (n *nodes) toAvoid() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	silent := slices.DeleteFunc(slices.Sorted(maps.Keys(n.all)), func(name string) bool { return !n.all[name].silent })
	if len(silent) == len(n.all) {
		return nil
	}
	return silent
}

// avoid keeps a pod from nodes that are silent: the cluster's own scheduler places pods there until it, too, takes them for lost.
func (n *nodes) avoid(spec *corev1.PodSpec) {
	var not []corev1.NodeSelectorRequirement
	for _, name := range n.toAvoid() {
		not = append(not, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{name}})
	}
	if len(not) == 0 {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil { // else there is a node that it has to be on
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: not}},
		}}
	}
}
