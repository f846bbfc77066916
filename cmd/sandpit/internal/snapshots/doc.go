// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshots has the commands about snapshots.
package snapshots
