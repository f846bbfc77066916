// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package alarm

import "time"

// HostClock notices that the host's clock is set, by one that cannot be. It holds what both said
// at the last look.
type HostClock struct{ Wall, Steady time.Time }

// Set returns how far the clock was set since the last look; zero: it was not. A host
// that slept looks as if its clock had been put forward.
func (h *HostClock) Set(wall, steady time.Time) time.Duration {
	d := wall.Sub(h.Wall) - steady.Sub(h.Steady)
	h.Wall, h.Steady = wall, steady
	if d.Abs() < Jump {
		return 0
	}
	return d
}
