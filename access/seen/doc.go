// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package seen remembers which programs have called by MCP: what they call themselves, by which token, and when they called
// last. It is in memory alone, and bounded: what clients say of themselves is a stranger's word.
package seen
