// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package cgroup limits what the commands of a sandbox use, kills and freezes
// them, on cgroup2. Where the host has controllers of cgroup v1, package [v1] limits
// with those in its place.
//
// # Layout
//
// Everything is below sandpit/NAMESPACE; the namespace is one
// server's own, so two servers on a host never meet. The tree of a sandbox is
//
//	ID        cgroup.procs belongs to the sandbox's root
//	ID/agent  process 1, with the limits of an agent; where all limits are v1's it
//	          stays in ID
//	ID/cmd    carries the limits; the directory and cgroup.procs belong to the
//	          sandbox's root: the agent makes a child group for each process
//
// so that killing, freezing and membership work alike wherever there is a
// cgroup2, also where its limits do not. What belongs to the sandbox's root is
// exactly the above: enough for the agent to fork into a group below cmd (the
// kernel asks for write access to the target and to the common ancestor), and
// no limit, no way to make a group beside cmd, no way into agent.
//
// # Order
//
// The cgroup namespace of a sandbox has to have ID as its root, or the agent
// could not see both where it is and where it forks to. Therefore: [Driver.Create];
// fork process 1 into [Group.Dir] and let it unshare its cgroup namespace there;
// beside that, [Group.Prepare]. Then process 1 is moved to the group
// of [Group.MakeAgent], and [Group.Activate] gives the limits to cmd: a cgroup2 group cannot
// hold processes itself while its children have controllers.
//
// # Where v1 has controllers
//
// What v1 holds is not cgroup2's to give ([Info]). The same calls limit both: [Group.Prepare] makes
// the v1 groups of the commands, with their limits, and [Driver.Agent] those of process 1; threads join
// them by way of [Group.JoinFiles] and [Agent.Files], which are empty on cgroup2 alone. Where
// v1 holds all limits MakeAgent is left out, and Activate has nothing to do.
//
// The package must not know sandboxes, agents' protocols or records. It starts
// no goroutine. All methods are safe for concurrent use on different ids; on
// one id the caller serialises.
package cgroup
