// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"strings"
	"testing"

	"sandpit.dev/blob/configured"
	"sandpit.dev/fault"
	"sandpit.dev/runtime/kubernetes"
)

func TestTheSection(t *testing.T) {
	long := strings.Repeat("x", 64)
	placed := func(p kubernetes.Placement) kubernetes.Kind {
		return kubernetes.Kind{Kubeconfig: "auto", Placement: p}
	}
	tolerates := func(one kubernetes.Toleration) kubernetes.Kind {
		return placed(kubernetes.Placement{Tolerations: []kubernetes.Toleration{{Key: "k", Value: "v"}, one}})
	}
	for name, tt := range map[string]struct {
		kind  kubernetes.Kind
		field string // of the error; "": there is none
	}{
		"Nothing":                   {kubernetes.Kind{}, ""},
		"AKubeconfig":               {kubernetes.Kind{Kubeconfig: "auto", Registry: "r.example/x", Reach: "forward", Overcommit: 4}, ""},
		"NoCluster":                 {kubernetes.Kind{RuntimeClass: "gvisor"}, "kubernetes.kubeconfig"},
		"NodesOfNoCluster":          {kubernetes.Kind{Placement: kubernetes.Placement{Spread: "zone"}}, "kubernetes.kubeconfig"},
		"AClassThatIsNoName":        {kubernetes.Kind{Kubeconfig: "auto", RuntimeClass: "a b"}, "kubernetes.runtime_class"},
		"ANamespaceThatIsNoName":    {kubernetes.Kind{Kubeconfig: "auto", Namespace: "A"}, "kubernetes.namespace"},
		"ReachedInNoWay":            {kubernetes.Kind{Kubeconfig: "auto", Reach: "node"}, "kubernetes.reach"},
		"LessThanAll":               {kubernetes.Kind{Kubeconfig: "auto", Overcommit: 0.5}, "kubernetes.overcommit"},
		"ARegistryWithoutAPath":     {kubernetes.Kind{Kubeconfig: "auto", Registry: "r.example"}, "kubernetes.registry"},
		"Volumes":                   {kubernetes.Kind{Kubeconfig: "auto", VolumeClass: "shared.files", VolumeAccess: "ReadWriteMany"}, ""},
		"AClassOfVolumesThatIsNot":  {kubernetes.Kind{Kubeconfig: "auto", VolumeClass: "No Class"}, "kubernetes.volume_class"},
		"AnAccessThatIsNone":        {kubernetes.Kind{Kubeconfig: "auto", VolumeAccess: "ReadOnlyMany"}, "kubernetes.volume_access"},
		"VolumesOfNoCluster":        {kubernetes.Kind{VolumeAccess: "ReadWriteOnce"}, "kubernetes.kubeconfig"},
		"SnapshotsInADirectory":     {kubernetes.Kind{Kubeconfig: "auto", Snapshots: configured.Place{Dir: "/srv/snapshots"}}, ""},
		"SnapshotsInABucket":        {kubernetes.Kind{Kubeconfig: "auto", Snapshots: configured.Place{S3: configured.S3{Bucket: "snapshots"}}}, ""},
		"SnapshotsInARelativePlace": {kubernetes.Kind{Kubeconfig: "auto", Snapshots: configured.Place{Dir: "snapshots"}}, "kubernetes.snapshots.dir"},
		"SnapshotsInTwoPlaces":      {kubernetes.Kind{Kubeconfig: "auto", Snapshots: configured.Place{Dir: "/srv", S3: configured.S3{Bucket: "snapshots"}}}, "kubernetes.snapshots.s3"},
		"SnapshotsOfNoCluster":      {kubernetes.Kind{Snapshots: configured.Place{Dir: "/srv"}}, "kubernetes.kubeconfig"},
		"Placed":                    {placed(kubernetes.Placement{NodeSelector: map[string]string{"a/b": "c"}, Labels: map[string]string{"team": ""}, Spread: "kubernetes.io/hostname", PullSecrets: []string{"s"}}), ""},
		"ASelectorThatIsNoName":     {placed(kubernetes.Placement{NodeSelector: map[string]string{"a b": "c"}}), "kubernetes.node_selector"},
		"ASelectorOfNoValue":        {placed(kubernetes.Placement{NodeSelector: map[string]string{"a": long}}), "kubernetes.node_selector"},
		"ALabelThatIsNoName":        {placed(kubernetes.Placement{Labels: map[string]string{"": "c"}}), "kubernetes.labels"},
		"ALabelOfTheServers":        {placed(kubernetes.Placement{Labels: map[string]string{"sandpit.dev/server": "c"}}), "kubernetes.labels"},
		"ASecretThatIsNoName":       {placed(kubernetes.Placement{PullSecrets: []string{"s", "../s"}}), "kubernetes.pull_secrets"},
		"SpreadOverNoLabel":         {placed(kubernetes.Placement{Spread: "a b"}), "kubernetes.spread"},
		"Tolerates":                 {tolerates(kubernetes.Toleration{Operator: "Exists"}), ""},
		"ToleratesOneEffect":        {tolerates(kubernetes.Toleration{Key: "a", Operator: "Equal", Value: "b", Effect: "NoSchedule"}), ""},
		"TolerationOfNothing":       {tolerates(kubernetes.Toleration{}), "kubernetes.tolerations[1]"},
		"TolerationOfAnOperator":    {tolerates(kubernetes.Toleration{Key: "a", Operator: "In"}), "kubernetes.tolerations[1]"},
		"TolerationOfAnEffect":      {tolerates(kubernetes.Toleration{Key: "a", Effect: "Never"}), "kubernetes.tolerations[1]"},
		"TolerationOfAValue":        {tolerates(kubernetes.Toleration{Key: "a", Operator: "Exists", Value: "b"}), "kubernetes.tolerations[1]"},
		"TolerationOfALongValue":    {tolerates(kubernetes.Toleration{Key: "a", Value: long}), "kubernetes.tolerations[1]"},
		"TolerationOfAKeyThatIsNot": {tolerates(kubernetes.Toleration{Key: "a b"}), "kubernetes.tolerations[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(k *kubernetes.Kind, field string) {
				t.Helper()
				err := k.Check()
				if (err == nil) != (field == "") || err != nil && (fault.Of(err) != fault.Invalid || !strings.HasPrefix(fault.As(err).Message, field+":")) {
					t.Errorf("got %v, want an error about %q", err, field)
				}
			}
			k := tt.kind
			check(&k, tt.field)
			check(k.Further("other", &kubernetes.Kind{}), strings.Replace(tt.field, "kubernetes.", "clusters.other.", 1))
		})
	}
}
