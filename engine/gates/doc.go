// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package gates has the gates of sandboxes that are up: what carries their traffic to the world, by which policy,
// what of it was refused, and which bound secrets are put into it; and has programs inside trust what those need. It
// must not know the verbs.
package gates
