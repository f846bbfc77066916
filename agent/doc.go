// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package agent is the server's half of the agent: a [Client] calls our program that is process 1
// of a sandbox, and through it runs commands and moves files. It is the same for every runtime;
// it must not know runtimes, stores or the engine.
//
// The agent lives among untrusted code, so nothing that it answers is trusted: every
// length, count, number and string is checked before it is passed on.
//
// # Errors
//
// Errors are of package fault. The agent's own errors keep their codes. A connection that cannot
// be made is the dialer's error, or fault.Unavailable; one that breaks, or an answer that
// violates the protocol, is fault.Unavailable, too. After that it is unknown whether the call had
// effect: a start can be looked up by its id, files by Stat.
package agent
