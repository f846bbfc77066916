// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package route makes all addresses local to a network namespace, so that all that is sent there comes
// back in on its loopback. It speaks to the kernel's routing itself: it is linked into the agent, which is small.
package route
