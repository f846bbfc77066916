// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcp is the MCP coat: the engine's verbs as tools for AI agents, over
// Streamable HTTP, in both eras of the protocol on one address, and over HTTP+SSE,
// which came before it. Requests of the stateless era (2026-07-28) go to a handler
// without sessions, whose calls end with their HTTP request; all others go to one with
// sessions, each bound to the token that opened it, whose clients may come back for an
// answer after a broken connection. A GET that names no session opens one of
// HTTP+SSE. Calls that take long become tasks for clients that know of them.
//
// # Answers
//
// They are written for models. The first line is the verdict. Then come the
// server's own notes and the changed files, and last the output, in sections:
// whatever stands above the first section is the server's, and no program can
// forge it. A command that fails is an answer; only what the server could not do
// is marked as an error, and its text names the cause, the value that was sent
// and the next call. Structured content goes with handles and lists, where it is
// complete by itself, because many clients show a model one of the two only.
//
// # The default sandbox
//
// Tools that work in a sandbox may leave it out. Then they mean the one named
// "default-" and the token's name, which the first call that writes makes. So
// two agents with tokens of their own do not meet in one.
//
// # Boundaries
//
// It authenticates nobody: whoever mounts it puts a guard in front, and says how
// to learn the caller from a request's context. It knows no driver, no database
// and no other coat.
package mcp
