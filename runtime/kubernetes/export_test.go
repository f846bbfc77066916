// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import "time"

// SetClaimPatience changes how long a claim gets to be bound.
func (d *Driver) SetClaimPatience(t time.Duration) { d.claimPatience = t }

// SetMinor has the driver take the cluster for one of another version.
func (d *Driver) SetMinor(minor int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.minor = minor
}
