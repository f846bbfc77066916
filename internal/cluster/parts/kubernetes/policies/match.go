// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func selector(s *metav1.LabelSelector) labels.Selector {
	r, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing() // the API server lets no such in
	}
	return r
}

// peers returns the matches of a rule's peers on a side, saddr or daddr.
func (s state) peers(namespace, side string, peers []networkv1.NetworkPolicyPeer) []string {
	if len(peers) == 0 {
		return []string{""}
	}
	var out []string
	for _, p := range peers {
		if b := p.IPBlock; b != nil {
			match := fmt.Sprintf("ip %s %s ", side, b.CIDR)
			if len(b.Except) > 0 {
				match += fmt.Sprintf("ip %s != { %s } ", side, strings.Join(b.Except, ", "))
			}
			out = append(out, match)
			continue
		}
		if addresses := s.addresses(namespace, p); len(addresses) > 0 {
			out = append(out, fmt.Sprintf("ip %s { %s } ", side, strings.Join(addresses, ", ")))
		}
	}
	return out
}

// addresses returns those of the pods that a peer selects, in order.
func (s state) addresses(namespace string, p networkv1.NetworkPolicyPeer) []string {
	namespaces := []string{namespace}
	if p.NamespaceSelector != nil {
		namespaces = nil
		list, _ := s.namespaces.List(selector(p.NamespaceSelector)) // of a cache, which fails never
		for _, n := range list {
			namespaces = append(namespaces, n.Name)
		}
	}
	which := labels.Everything()
	if p.PodSelector != nil {
		which = selector(p.PodSelector)
	}
	var out []string
	for _, n := range namespaces {
		pods, _ := s.pods.Pods(n).List(which)
		for _, pod := range pods {
			if isolated(pod) {
				out = append(out, pod.Status.PodIP)
			}
		}
	}
	slices.Sort(out)
	return out
}

// ports returns the matches of a rule's ports. A name is one of the ports of the pod to.
func ports(list []networkv1.NetworkPolicyPort, to *corev1.Pod) []string {
	if len(list) == 0 {
		return []string{""}
	}
	var out []string
	for _, p := range list {
		protocol := "tcp"
		if p.Protocol != nil {
			protocol = strings.ToLower(string(*p.Protocol))
		}
		switch {
		case p.Port == nil:
			out = append(out, "meta l4proto "+protocol+" ")
		case p.Port.Type == intstr.Int && p.EndPort != nil:
			out = append(out, fmt.Sprintf("%s dport %d-%d ", protocol, p.Port.IntVal, *p.EndPort))
		case p.Port.Type == intstr.Int:
			out = append(out, fmt.Sprintf("%s dport %d ", protocol, p.Port.IntVal))
		case to != nil:
			for _, c := range to.Spec.Containers {
				for _, named := range c.Ports {
					if named.Name == p.Port.StrVal {
						out = append(out, fmt.Sprintf("%s dport %d ", protocol, named.ContainerPort))
					}
				}
			}
		}
	}
	return out
}
