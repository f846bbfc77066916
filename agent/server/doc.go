// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package server is the agent's inside half: it runs commands, keeps their
// logs, and reads and writes files, for whoever holds the other end of its
// socket.
//
// It lives among untrusted code, as process 1 of a sandbox or, in the plain
// form that tests and the in-memory runtime use, as a part of another program. It
// must not know how it is isolated: the ways of seeing the sandbox come in as
// [view.View], the means of killing a command's whole tree as [Groups]. It imports
// nothing of the server's but fault and agent/wire.
//
// # Decisions
//
//   - A program that is not found or cannot be executed is no failure of the
//     call. As in a shell, the process exits with 127 or 126 and a line on its
//     stderr says why.
//   - A command has ended when its first process has. What it wrote by then is
//     in its output, in full. Children that it leaves behind run on in its
//     group; their output is still logged, until the caps, and they are killed
//     with it or when the sandbox stops.
//   - A kill, a timeout and a shutdown reach the whole group. Without [Groups]
//     they reach the session and the descendants that /proc shows at that
//     moment: a process that was forked twice and left the session escapes.
//   - A program never waits for us: output over its cap is read, counted and
//     dropped.
//   - Stdin that is given at once is complete before the program starts, and
//     comes from a pipe's buffer, or through a pipe from a file that only the
//     agent has open: no connection needs to live for it.
//   - All logs together, and stdin that is stored, have one budget: see budget.
//   - A log that the disk refuses is kept in memory up to a bound, so that a
//     full disk can still be looked into; what is lost is flagged.
package server
