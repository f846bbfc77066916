// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package cgroup limits what the commands of a sandbox use, kills and freezes
// them, on cgroup v1, v2 and hosts that have both.
//
// # Layout
//
// Everything is below sandpit/NAMESPACE in each hierarchy; the namespace is one
// server's own, so two servers on a host never meet.
//
// A v1 controller limits threads. Its group sandpit/NAMESPACE/ID holds the
// commands of one sandbox and nothing else. The agent is in a group of its own,
// sandpit/NAMESPACE/_agentNUMBER, which has other limits ([Options].Agents); those of
// its threads that fork commands move themselves, by writing "0" to files that the
// daemon opened (JoinFiles), and what they fork is born limited. An agent that a server
// of an earlier version started is in _agents itself, without limits.
//
// Some groups are made before there is a sandbox ([Driver.MakeSpares]): those of agents
// are found by who is in them, those of commands have names that are no id's and are
// renamed.
//
// The v2 tree of a sandbox is
//
//	ID        cgroup.procs belongs to the sandbox's root
//	ID/agent  process 1 where v2 has limits, with those of an agent; elsewhere it
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
// beside that, [Group.Prepare]. Where limits are v2's, process 1 is moved to the group
// of [Group.MakeAgent], and [Group.Activate] gives the limits to cmd: a v2 group cannot
// hold processes itself while its children have controllers.
//
// The package must not know sandboxes, agents' protocols or records. It starts
// no goroutine. All methods are safe for concurrent use on different ids; on
// one id the caller serialises.
package cgroup
