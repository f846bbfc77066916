// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package fork

import (
	"os"

	"golang.org/x/sys/unix"
)

// HasKeepers reports whether [Command.StartKept] is there on this processor: it is written for amd64 only.
const HasKeepers = false

// Keeper is the process that a command was started below.
type Keeper struct{ PID, PIDFD int }

// StartKept is not there.
func (c *Command) StartKept() (pid, pidfd int, keeper *Keeper, err error) {
	return 0, -1, nil, errRefused
}

// Event is not there.
func (k *Keeper) Event() (*os.File, error) { return nil, errRefused }

// Status is not there.
func (k *Keeper) Status() (unix.WaitStatus, bool) { return 0, false }

// Over is not there.
func (k *Keeper) Over() bool { return true }

// Free does nothing.
func (k *Keeper) Free() {}

// Kill does nothing.
func (k *Keeper) Kill() {}
