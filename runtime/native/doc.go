// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package native isolates with the kernel's own primitives, and needs nothing
// installed: namespaces, an overlay over a shared image, seccomp, capabilities
// and cgroups, put together in Go by raw system calls.
//
// # A sandbox on the host
//
//   - a process that is process 1 of its pid namespace: the agent, started by
//     package spawn, in an inside that package furnish makes meanwhile;
//   - a writable layer in the store of package layer;
//   - cgroups of package cgroup for its commands, and others for its agent;
//   - two files in instances/: the agent's socket, and the state; a third while it is
//     paused;
//   - a range of 65,536 host uids, taken at start and returned at stop;
//   - two descriptors of the server's: a pidfd, and the overlay's root.
//
// Nothing is mounted in the host's mount namespace. All of it is found again by
// id after the server was killed: state names the process, and its start time
// and the host's boot id tell it from another process of the same number.
//
// # Standing still
//
// A pause freezes the sandbox's cgroup, the agent too, which is told before that, so that
// it stops the clocks of its commands; the kernel freezes processes and no clocks. That a pause
// froze them says a file, which is made after the freeze and removed before the thaw:
// whoever is found frozen without it was being snapshotted, or paused, by a server that
// was killed, and is thawed. A snapshot of what is up freezes for as long as the store
// takes to commit. Nothing inside can freeze, thaw, or hold up either for ever.
//
// # A start
//
// The steps of a start are listed in start.go. Process 1 is started, and its inside made, by whoever asks for the sandbox, while another
// goroutine makes its disk and the groups of its commands. What is of a thread in Linux, v1
// cgroups and the mount namespace, process 1 joins by itself on its way: a thread of Go's
// kept for that would have to be woken, and whoever waits for it after that.
package native
