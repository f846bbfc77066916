// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package call has the agent's end of a call's connection: what it asks for, what comes and goes on it,
// and whether its caller is still there. It must not know what a call does.
package call
