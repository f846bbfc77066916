// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import coordinationv1 "k8s.io/api/coordination/v1"

// NodeLeases is the namespace in which each node has a lease of its name, which its kubelet renews.
const NodeLeases = "kube-node-lease"

// Leases is the kind of leases.
func Leases() Kind[coordinationv1.Lease] {
	return Kind[coordinationv1.Lease]{"leases", "/apis/coordination.k8s.io/v1"}
}
