// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package toolset is what tools for AI agents are made of, whatever their profile: what a
// tool and a profile are, how arguments are read, how an answer is written, how a command
// is run and what is shown of it.
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
// # Boundaries
//
// It knows no profile and no single tool but by the names that errors of the default
// profile name as the next step.
package toolset
