// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The time is synctest's: it passes when all wait.
func TestSeveralFollowersOfASandboxShareAPaceAndOneHasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Audience
		follow := func(process string, own bool) {
			t.Helper()
			if err := a.Join(process, own); err != nil {
				t.Fatal(err)
			}
		}
		takes := func(bytes int) time.Duration {
			t.Helper()
			began := time.Now()
			for ; bytes > 0; bytes -= audienceAhead {
				if err := a.Wait(t.Context(), min(bytes, audienceAhead)-frameCost); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(began)
		}
		const much = 10 * audienceRate
		follow("p1", false)
		follow("p2", true)
		if took := takes(much); took != 0 {
			t.Errorf("one, beside one of the engine's own, takes %v", took)
		}
		follow("p2", false)
		if took, want := takes(much), much/audienceRate*time.Second; took < want-time.Second || took > want {
			t.Errorf("two take %v for what takes %v at their pace", took, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Wait(ctx, audienceAhead); !errors.Is(err, context.Canceled) {
			t.Errorf("one that leaves: %v", err)
		}
		a.Leave("p2", false)
		if took := takes(much); took != 0 {
			t.Errorf("once it is one again it takes %v", took)
		}
	})
}
