// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package code runs code in sandboxes: cells in contexts that keep their variables, and commands
// in shells. It stands above the engine, of which it needs what [Engine] lists, and is its
// [engine.Extension]. It knows no wire, no driver and no database.
//
// # Contexts
//
// A context is a record (sandbox.Context) and, while it lives, a kernel: a process of the
// sandbox that keeps its variables, see package kernel. The record, with what
// it takes to speak to the kernel again, is written in the transactions that write a cell's
// row, so that a new server goes on with kernels and with the cells in them. Cells of a
// context take its lock, in the order of asking. Whatever ends a kernel is kept in the
// record, and told by the next cell, which starts another. The kernels of single cells,
// and those that no record knows, are ended when the sandbox is adopted.
//
// # Shells
//
// A shell is a named bash of a sandbox: what a command in it leaves behind (its directory,
// variables, functions, background jobs) the next one finds. It is a context in
// bash, so that it outlives the server, and its commands are cells, with the events of
// commands. Each command is also a process of the agent's, into whose log it writes by pipes that the shell
// opens for it; the server tells the agent when it has ended, and reads its output as any follower does. A command that ends the shell (exit, set -e) is told so, and the next one
// begins another under the same name and is told that, too.
//
// # Locks
//
// Order of locks: a context's lock, contexts.mu, codeContext.mu; cell.mu is held while a sink
// takes something, and with none of the others. The engine calls Adopt in a sandbox's turn: no
// one waits for that turn with a context's lock, but in the engine.
package code
