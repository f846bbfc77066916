// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcp is the MCP coat: the engine's verbs as tools for AI agents, in profiles.
// How calls come and answers go is package transport's.
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
