// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcp is the MCP coat: the engine's verbs as tools for AI agents, in profiles.
// How calls come and answers go is package transport's, what a tool is package toolset's.
// Profiles that are another server's have a package each below profile; the default one is
// here.
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
