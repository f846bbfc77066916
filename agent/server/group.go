// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/fork"
)

// Groups makes one group of processes per command, out of which no process can
// step, so that a kill reaches all that the command started. It is safe for
// concurrent use.
type Groups interface {
	// New makes an empty group. The id is a process's, fit for a file name.
	New(id string) (Group, error)
}

// Group is the processes of one command.
type Group interface {
	// FD is a cgroup's directory, into which the command is forked; below zero
	// where the view's thread puts its children into the group by itself.
	FD() int
	// Kill sends SIGKILL to all members, also to those that are being forked.
	Kill() error
	// Empty waits until no member is left alive.
	Empty(ctx context.Context) error
	// Remove returns an empty group up; it fails where a member is left, and then the
	// group stays. After it nothing else is called.
	Remove() error
}

// Parent is a [Group] that starts its command itself: the command is no child of the agent's.
type Parent interface {
	// Start is that of the command, and may be called again after an error.
	Start(c *fork.Command) (pid, pidfd int, err error)
	// Status waits for the end of the command.
	Status() unix.WaitStatus
	// Members lists what lives of the group now.
	Members() []int
}
