// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package backups keeps the disks of sandboxes, volumes and snapshots as they are at one instant, for as long as a
// backup reads them. It must not know the verbs, nor what a backup is.
package backups
