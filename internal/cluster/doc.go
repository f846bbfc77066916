// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes cluster for a test, on a host that has none and shall not get one. It has one node, and
// others as tests add them. Components that end are started again; tests end them, and whole nodes, to see what comes of it.
//
// All its components are real: etcd, the API server, the controllers, the scheduler, the kubelet, containerd and
// runc, and where a test asks for them kube-proxy and CoreDNS. They are built of their modules, as directory parts has them, which takes ten minutes or so, once. There is
// no plug-in of a network that enforces policies among such modules; a small one of our own does.
//
// A node changes the host that it runs on. So it has namespaces of its own for mounts, processes and the network,
// control groups below one name, and files of its own in the place of the kernel's settings that it would change.
// Close kills process 1 of these namespaces, and the kernel ends all else in them.
package cluster
