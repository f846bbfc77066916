// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Placement is what the scheduler and the nodes are told of all pods.
type Placement struct {
	// NodeSelector are labels that nodes have which take sandboxes.
	NodeSelector map[string]string `yaml:"node_selector"`
	// Tolerations let sandboxes be on nodes with taints, in the cluster's own words.
	Tolerations []Toleration `yaml:"tolerations"`
	// Spread is a label of nodes, as topology.kubernetes.io/zone or kubernetes.io/hostname, over whose values sandboxes are spread as far as there is
	// room; "": as the cluster's scheduler does it.
	Spread string `yaml:"spread"`
	// PullSecrets are secrets of the namespace by which nodes pull images.
	PullSecrets []string `yaml:"pull_secrets"`
	// Labels are given to pods and claims beside the server's own, which begin with sandpit.dev/.
	Labels map[string]string `yaml:"labels"`
}

// Toleration is that of a taint; see the cluster's core/v1.
type Toleration struct {
	Key      string `yaml:"key"`
	Operator string `yaml:"operator"` // Equal, Exists; "": Equal
	Value    string `yaml:"value"`
	Effect   string `yaml:"effect"` // NoSchedule, PreferNoSchedule, NoExecute; "": all
}

// isZero reports whether nothing is set.
func (p *Placement) isZero() bool {
	return len(p.NodeSelector)+len(p.Tolerations)+len(p.PullSecrets)+len(p.Labels) == 0 && p.Spread == ""
}

// ownLabels is what the names of the server's own labels begin with.
const ownLabels = "sandpit.dev/"

// check returns a problem of a field, and the field's name below the section.
func (p *Placement) check() (field string, err error) {
	wrong := func(name, value, what string, problems []string) bool {
		if field == "" && len(problems) > 0 {
			field, err = name, fmt.Errorf("%q is not a valid %s of a cluster: %s", sandbox.Clip(value, 80), what, problems[0])
		}
		return field != ""
	}
	for name, labels := range map[string]map[string]string{"node_selector": p.NodeSelector, "labels": p.Labels} {
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			if wrong(name, k, "name of a label", validation.IsQualifiedName(k)) || wrong(name, labels[k], "value of a label", validation.IsValidLabelValue(labels[k])) {
				return field, err
			}
		}
	}
	for k := range p.Labels {
		if strings.HasPrefix(k, ownLabels) || strings.HasPrefix(k, mountLabel("")) {
			return "labels", fmt.Errorf("%q is the server's own: those begin with %s", sandbox.Clip(k, 80), ownLabels)
		}
	}
	for _, s := range p.PullSecrets {
		wrong("pull_secrets", s, "name of a secret", validation.IsDNS1123Subdomain(s))
	}
	if p.Spread != "" {
		wrong("spread", p.Spread, "name of a label", validation.IsQualifiedName(p.Spread))
	}
	for n, t := range p.Tolerations {
		if field == "" {
			if err = t.check(); err != nil {
				field = fmt.Sprintf("tolerations[%d]", n)
			}
		}
	}
	return field, err
}

func (t Toleration) check() error {
	operators := []string{"", string(corev1.TolerationOpEqual), string(corev1.TolerationOpExists)}
	effects := []string{"", string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}
	exists := t.Operator == string(corev1.TolerationOpExists)
	switch {
	case !slices.Contains(operators, t.Operator):
		return fmt.Errorf("the operator %q is neither Equal nor Exists", sandbox.Clip(t.Operator, 40))
	case !slices.Contains(effects, t.Effect):
		return fmt.Errorf("the effect %q is none of NoSchedule, PreferNoSchedule and NoExecute", sandbox.Clip(t.Effect, 40))
	case t.Key == "" && !exists:
		return fmt.Errorf("it has no key, which only the operator Exists may leave out")
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return fmt.Errorf("the key %q is not a valid name of a taint: %s", sandbox.Clip(t.Key, 80), validation.IsQualifiedName(t.Key)[0])
	case exists && t.Value != "":
		return fmt.Errorf("it has a value, %q, which the operator Exists does not look at", sandbox.Clip(t.Value, 80))
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		return fmt.Errorf("the value %q is not valid: %s", sandbox.Clip(t.Value, 80), validation.IsValidLabelValue(t.Value)[0])
	}
	return nil
}

// checkPlacement checks the part of the section that is a Placement.
func (k *Kind) checkPlacement() error {
	field, err := k.Placement.check()
	if err != nil {
		return fault.InvalidField(k.section()+"."+field, "%s", err.Error())
	}
	return nil
}

// apply tells the cluster where a pod may be, and how its images are pulled.
func (p *Placement) apply(spec *corev1.PodSpec, server map[string]string) {
	spec.NodeSelector = p.NodeSelector
	for _, t := range p.Tolerations {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOperator(cmp.Or(t.Operator, string(corev1.TolerationOpEqual))), Value: t.Value, Effect: corev1.TaintEffect(t.Effect),
		})
	}
	if p.Spread != "" {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: p.Spread, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: server},
		}}
	}
	for _, s := range p.PullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
	}
}
