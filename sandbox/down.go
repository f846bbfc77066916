// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Passes reports whether what is down for this cause is meant to go on: a clock or the host took
// it down, or a restart or an exchange of its disk, and no caller asked for that.
func (c Cause) Passes() bool {
	switch c {
	case CauseIdle, CauseHost, CauseRestore, CauseRestart:
		return true
	}
	return false
}

// SpendExpiry clears the date that has brought the sandbox down, in the change that brings it there from another
// state: until then a crash leaves the date, and what it asks for is done again.
func (s *Sandbox) SpendExpiry(from State) {
	if s.State != from && (s.State == Stopped || s.State == Paused) && s.StopCause == CauseTTL && s.OnExpiry.Spends() {
		s.ExpiresAt = time.Time{}
	}
}

// Wakes reports whether a call brings the sandbox up, which is not up: with AutoStart if its cause
// passes; with AutoResume also if a caller paused it. What ended for want of memory or of disk, or
// was killed, would do so again.
func (s *Sandbox) Wakes() bool {
	switch s.State {
	case Paused:
		return s.AutoResume || s.AutoStart && s.StopCause == CauseIdle
	case Stopped, Archived, Failed:
		return s.AutoStart && s.StopCause.Passes()
	}
	return false
}

// DeletesItself reports whether the sandbox is deleted for being stopped. One that was restarted, or
// whose disk was exchanged, and that did not start is not: its owner wanted it to go on.
func (s *Sandbox) DeletesItself() bool {
	return s.State == Stopped && s.AutoDelete && s.StopCause != CauseRestore && s.StopCause != CauseRestart
}
