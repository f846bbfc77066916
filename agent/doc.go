// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package agent is the server's half of the agent: a [Client] speaks to the
// program of ours that is process 1 of a sandbox, and through it runs commands
// and moves files. It is the same whatever isolates the sandbox; it must not
// know runtimes, stores or the engine.
//
// The agent lives among untrusted code, so nothing that it answers is trusted: every
// length, count, number and string is checked before it is passed on.
//
// # Errors
//
// Errors are of package fault. What the agent says comes with its own code. A
// connection that cannot be made is passed on as the dialer's error, or is
// fault.Unavailable; one that breaks, or an answer that breaks the protocol,
// is fault.Unavailable, too. After that it is unknown whether the call had
// effect: a start can be looked up by its id, files by Stat.
package agent
