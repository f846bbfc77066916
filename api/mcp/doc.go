// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcp is the MCP coat: the engine's verbs as tools for AI agents, in profiles.
// How calls come and answers go is package transport's, what a tool is package toolset's.
// Profiles of tools have a package each below profile: sandpit is the default one, the others
// are those of other servers.
//
// # Boundaries
//
// It authenticates nobody: whoever mounts it puts a guard in front, and says how
// to learn the caller from a request's context. It knows no driver, no database
// and no other coat.
package mcp
