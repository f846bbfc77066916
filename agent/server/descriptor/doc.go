// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package descriptor reads, writes and closes files by their descriptors alone. It must not know what
// is in them.
package descriptor
