// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Context is where cells of code run, in a sandbox: a cell can use what the one before defined.
// Its variables live in a process of the sandbox, its kernel, and end with it.
type Context struct {
	ID        string // of the form of an [ID]
	Sandbox   ID
	Name      string // of a shell, one of its kind in the sandbox; empty: it is not a shell
	Language  string
	Cwd       string            // where its kernel starts
	User      string            // whose the kernel is
	Env       map[string]string // of the kernel, over the sandbox's own
	Default   bool              // cells of its language that name no context run here
	CreatedAt time.Time
	UsedAt    time.Time // when its last cell began or ended

	ProcessID string // its last kernel's
	Starts    int64  // how many kernels it had
	Cells     int64  // that ran in the last one
	Ended     string // why that kernel ended; empty: it lives, as far as is known
	RunningID string // the ProcessID of the event of the cell that runs

	// State is what the engine needs to reconnect to the kernel. It is a secret.
	State []byte
}
