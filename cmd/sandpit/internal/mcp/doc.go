// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcp has the commands that speak MCP, or set up the clients that do.
package mcp
