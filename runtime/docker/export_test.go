// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

// SetDepth sets from how many layers on those of a snapshot are made one.
func (d *Driver) SetDepth(n int) { d.depth = n }
