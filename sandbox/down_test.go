// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"testing"

	"sandpit.dev/sandbox"
)

func TestWhatACallBringsUp(t *testing.T) {
	for _, c := range []struct {
		state         sandbox.State
		cause         sandbox.Cause
		start, resume bool // with AutoStart alone; with AutoResume alone
	}{
		{sandbox.Running, "", false, false},
		{sandbox.Paused, sandbox.CauseIdle, true, true},
		{sandbox.Paused, sandbox.CauseUser, false, true},
		{sandbox.Stopped, sandbox.CauseIdle, true, false},
		{sandbox.Stopped, sandbox.CauseHost, true, false},
		{sandbox.Stopped, sandbox.CauseRestore, true, false},
		{sandbox.Stopped, sandbox.CauseRestart, true, false},
		{sandbox.Stopped, sandbox.CauseUser, false, false},
		{sandbox.Stopped, sandbox.CauseOOM, false, false},
		{sandbox.Failed, sandbox.CauseHost, true, false},
	} {
		s := sandbox.Sandbox{State: c.state, StopCause: c.cause}
		s.AutoStart = true
		if got := s.Wakes(); got != c.start {
			t.Errorf("%s (%s) with AutoStart: got %v", c.state, c.cause, got)
		}
		s.AutoStart, s.AutoResume = false, true
		if got := s.Wakes(); got != c.resume {
			t.Errorf("%s (%s) with AutoResume: got %v", c.state, c.cause, got)
		}
	}
}

func TestWhatIsToRunAgainIsNotDeletedForBeingStopped(t *testing.T) {
	for cause, want := range map[sandbox.Cause]bool{
		sandbox.CauseUser: true, sandbox.CauseHost: true, sandbox.CauseRestore: false, sandbox.CauseRestart: false,
	} {
		s := sandbox.Sandbox{State: sandbox.Stopped, StopCause: cause}
		s.AutoDelete = true
		if got := s.DeletesItself(); got != want {
			t.Errorf("%s: got %v, want %v", cause, got, want)
		}
	}
}
