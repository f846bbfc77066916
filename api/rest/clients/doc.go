// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package clients serves the operations on programs that speak MCP: how each is told of the server, and which have called.
package clients
