// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes is the runtime on a cluster: a sandbox is a pod, and its disk is a claim.
//
// The driver makes, finds and deletes both by plain verbs, and hears by one watch what becomes of the pods. It keeps no
// record of them: they have labels, which name the server's namespace and the sandbox. What it keeps in its directory are the
// keys of agents, which sandboxes it stopped, and snapshots.
//
// The agent is process 1 of the pod's one container. It comes by an image of one file, which is mounted as a volume, or copied
// by an init container where the cluster mounts no images. It listens on the pod's address, and is reached there, or by
// forwarding a port through the API server. All calls go over one connection, which begins with a handshake by a key that
// server and agent agree on at each start: what the pod is told for that may be read by anybody, and the agent answers in its
// log, which nobody else in the pod can write to.
//
// On the claim are the directories for work, homes and artifacts, and the agent's logs. What else a sandbox writes goes with its
// pod, as it stops.
//
// A volume is a claim, too. Before the pod's own container one with the same image makes places for volumes, so that no link is followed as
// they are mounted, and the agent finds the disk's directories once more where nothing is mounted in them.
//
// A snapshot is the agent's archive of these directories but for the logs, read while it has all processes stand still, or by a pod with
// nothing but the agent, and kept in chunks that several share: a file of the server's is their index. What a disk is to hold from its next start on is
// another name of such a file, in the sandbox's directory, until an agent has filled the disk from it, before any command runs.
//
// Pods have a network of the cluster's, and a policy that lets nothing out of it, and nothing in but to the agent's port. That the
// cluster's network keeps to it two pods of the driver's prove. Where a sandbox
// has a network, its agent brings what it sends, see package agent/traffic: a container that its pod gets for that, and which is over
// before the traffic begins, makes the sockets, and has CAP_NET_ADMIN alone.
package kubernetes
