// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package command says what callers may ask of a command: one that is waited for, one that nobody waits for, one at
// a terminal. It checks them, fills in what they leave out, and makes of them what the agent needs. It must not know
// who runs them.
package command
