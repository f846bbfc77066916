// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	networkv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/kubernetes/kubeapi"
)

// serverLabel is that of pods which servers run in: the chart's.
const serverLabel = "app.kubernetes.io/name"

// policy lets nothing out of this server's pods, and nothing in but servers to the agent's port.
func (d *Driver) policy() *networkv1.NetworkPolicy {
	tcp, port := corev1.ProtocolTCP, intstr.FromInt32(agentPort)
	return &networkv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: d.policyName(), Labels: map[string]string{labelServer: d.namespace}},
		Spec: networkv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelServer: d.namespace}},
			PolicyTypes: []networkv1.PolicyType{networkv1.PolicyTypeIngress, networkv1.PolicyTypeEgress},
			Ingress: []networkv1.NetworkPolicyIngressRule{{
				From: []networkv1.NetworkPolicyPeer{{
					NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{serverLabel: "sandpit"}},
				}},
				Ports: []networkv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}},
			}},
		},
	}
}

func (d *Driver) policyName() string { return "sandpit-" + d.namespace }

// deny has the policy there, which is asked once: without it no pod is made. Who deletes it then has the rights of the server.
func (d *Driver) deny(ctx context.Context) error {
	d.mu.Lock()
	denies := d.denies
	d.mu.Unlock()
	if denies == nil {
		return nil
	}
	_, err := kubeapi.Policies().Create(ctx, d.api, d.space, d.policy())
	if fault.Is(err, fault.Exists) {
		_, err = kubeapi.Policies().Change(ctx, d.api, d.space, d.policyName(), "", map[string]any{"spec": d.policy().Spec})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.denies = err
	return err
}
