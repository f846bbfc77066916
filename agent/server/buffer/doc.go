// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package buffer lends the buffers by which bytes of outputs and files pass through the agent, so that
// calls one after the other use the same memory. It must not know what is in them.
package buffer
