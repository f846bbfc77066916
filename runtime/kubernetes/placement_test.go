// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes"
)

// placed is of nodes that are chosen, kept free by a taint, and missing.
func placed(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	o.Placement = kubernetes.Placement{
		NodeSelector: map[string]string{"kubernetes.io/hostname": cluster.Node}, Spread: "kubernetes.io/hostname", PullSecrets: []string{"missing"},
		Tolerations: []kubernetes.Toleration{{Key: "sandboxes", Operator: "Exists", Effect: "NoSchedule"}}, Labels: map[string]string{"team.example/cost": "42"},
	}
	other := options(t, c)
	other.Placement = kubernetes.Placement{NodeSelector: map[string]string{"kubernetes.io/hostname": "nowhere"}, Tolerations: o.Placement.Tolerations}
	plain := options(t, c)
	clustertest.Kubectl(t, c, "taint", "node", cluster.Node, "sandboxes=only:NoSchedule")
	t.Cleanup(func() {
		if out, err := c.Kubectl(context.Background(), "taint", "node", cluster.Node, "sandboxes-").CombinedOutput(); err != nil {
			t.Errorf("take the taint back: %v: %s", err, out)
		}
	})
	serve(t, c, image, plain).refused(fault.Exhausted, "untolerated taint")
	serve(t, c, image, other).refused(fault.Exhausted, "didn't match Pod's node affinity/selector")

	s := serve(t, c, image, o)
	spec := s.spec()
	i := s.create(spec)
	if got := run(t, i, "", "echo placed"); got != "placed" {
		t.Errorf("got %q", got)
	}
	p, _ := s.pod(spec.ID)
	if p.Labels["team.example/cost"] != "42" || p.Spec.NodeName != cluster.Node || len(p.Spec.TopologySpreadConstraints) != 1 ||
		!slices.Contains(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: "missing"}) {
		t.Errorf("it is %+v", p)
	}
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}
