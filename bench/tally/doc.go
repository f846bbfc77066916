// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package tally counts the system calls of a process and of all that it starts,
// by name, without stopping any of them: programs in the kernel do it, at the
// tracepoints of system calls and of processes. It needs root and a kernel that
// can be traced. It knows nothing of what the processes are for.
package tally
