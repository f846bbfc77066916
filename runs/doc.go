// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package runs runs batches of commands and keeps the files that they leave. It stands above
// the engine: it begins commands as any caller does, and knows no runtime, no database and no
// wire. What it needs of the engine is in type [Engine].
//
// # Runs
//
// A run has a goroutine (type worker), which alone writes its record and its events, each
// change together with the events that tell of it. A command's process has its id on record before
// anything is begun; its event, which the engine commits before the agent begins it, tells a
// new server whether that happened. So a command is begun by the server that finds
// that it was not, and never twice. Output is copied from the process's log with the number
// of the last frame, in one transaction. The runs of an earlier server take their places in
// the queues again before the engine is ready.
//
// # Artifacts
//
// The files below /artifacts are copied out of the sandbox after a run, into a directory beside the
// run's own that is renamed when all are there; then the record says so. What no record owns is
// removed at the start. A run whose sandbox is deleted by a caller loses them at once, and is
// deleted soon after.
package runs
