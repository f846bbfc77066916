// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRelentless(t *testing.T) {
	t.Run("ClientsWorkBesideEachOtherUntilTheTimeIsUp", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			got, took, err := relentless(t.Context(), 4, time.Now().Add(time.Second), func(int) error { time.Sleep(300 * time.Millisecond); return nil })
			// The last calls of each begin before the end and are waited for.
			if err != nil || len(got.ok) != 16 || took != 1200*time.Millisecond {
				t.Errorf("got %d calls in %v, %v; want 16 in 1.2s", len(got.ok), took, err)
			}
		})
	})
	t.Run("AFailureEndsAll", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			broken := errors.New("broken")
			got, took, err := relentless(t.Context(), 2, time.Now().Add(time.Hour), func(client int) error {
				time.Sleep(time.Second)
				if client == 1 {
					return broken
				}
				return nil
			})
			if !errors.Is(err, broken) || took > 3*time.Second || got.n == len(got.ok) {
				t.Errorf("got %v after %v, %d of %d worked; want %v at once", err, took, len(got.ok), got.n, broken)
			}
		})
	})
}
