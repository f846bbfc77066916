// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// StopMeter adds to RunTime what the sandbox ran until at, if it does run.
func (s *Sandbox) StopMeter(at time.Time) {
	if !s.RunningSince.IsZero() {
		s.RunTime += max(at.Sub(s.RunningSince), 0)
		s.RunningSince = time.Time{}
	}
}

// RunMeter runs and stops the meter of a sandbox whose state was from until its UpdatedAt.
func (s *Sandbox) RunMeter(from State) {
	if s.State == from {
		return
	}
	switch s.State {
	case Running:
		if s.RunningSince.IsZero() { // a pause that did not work out stopped nothing
			s.RunningSince = s.UpdatedAt
		}
	case Paused, Stopped, Restoring, Failed:
		s.StopMeter(s.UpdatedAt)
	}
}
