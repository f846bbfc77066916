// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/sandbox"
)

// clock reads a number of seconds: least to MaxClock, or zero for never where
// least is zero.
func clock(sp *httpapi.Spellings, own string, seconds *int64, least int64) *time.Duration {
	if seconds == nil {
		return nil
	}
	if most := int64(sandbox.MaxClock / time.Second); *seconds < least || *seconds > most {
		sp.Add(sp.Name(own), "%d is outside %d to %d seconds", *seconds, least, most)
		return nil
	}
	return new(time.Duration(*seconds) * time.Second)
}

// lifetimes reads what ends a sandbox at a fixed time, and what ends it when it
// is not used. ttl_seconds is the one or the other, as mode says; beside a
// sliding one, timeout_seconds is still the other. Never tells that zero is
// taken, for never.
func lifetimes(sp *httpapi.Spellings, ttl, timeout *int64, mode *string, never bool) (absolute, sliding *time.Duration) {
	read := func(own string, seconds *int64) *time.Duration {
		least := int64(minTTL)
		if never && seconds != nil && *seconds == 0 {
			least = 0
		}
		return clock(sp, own, seconds, least)
	}
	if m := httpapi.Choice(sp, "ttl_mode", mode, "absolute", "sliding"); m != nil && ttl == nil && (*m == "sliding" || timeout == nil) {
		sp.Add("ttl_mode", "says what ttl_seconds means, which is missing; send that too")
	} else if m != nil && *m == "sliding" {
		return read("timeout_seconds", timeout), read("ttl_seconds", ttl)
	}
	return read("ttl_seconds", httpapi.Either(sp, "ttl_seconds", ttl, "timeout_seconds", timeout)), nil
}

func idleAction(sp *httpapi.Spellings, given *string) *sandbox.IdleAction {
	return httpapi.Choice(sp, "idle_action", given, sandbox.IdleStop, sandbox.IdlePause)
}

func onExpiry(sp *httpapi.Spellings, given *string) *sandbox.ExpiryAction {
	return httpapi.Choice(sp, "on_expiry", given, sandbox.ExpiryDelete, sandbox.ExpiryStop, sandbox.ExpiryPause)
}

func checkpoints(sp *httpapi.Spellings, given *string) *sandbox.Checkpoints {
	return httpapi.Choice(sp, "checkpoints", given, sandbox.CheckpointsOff, sandbox.CheckpointsCommand)
}
