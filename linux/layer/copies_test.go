// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"testing"
	"time"
)

func TestALullIsAMomentWithoutCopies(t *testing.T) {
	waitIdle := func(c *copies, long, most time.Duration, stop <-chan struct{}) <-chan struct{} {
		over := make(chan struct{})
		go func() {
			defer close(over)
			c.waitIdle(long, most, stop)
		}()
		return over
	}
	waits := func(t *testing.T, over <-chan struct{}) {
		t.Helper()
		select {
		case <-over:
			t.Error("it did not wait")
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Run("NoneWasMadeForLong", func(t *testing.T) {
		<-waitIdle(new(copies), time.Millisecond, time.Hour, nil)
	})
	t.Run("OneIsBeingMade", func(t *testing.T) {
		var c copies
		first, second := c.begin(), c.begin()
		over := waitIdle(&c, time.Millisecond, time.Hour, nil)
		waits(t, over)
		first()
		waits(t, over)
		second()
		<-over
	})
	t.Run("OneWasMadeJustNow", func(t *testing.T) {
		var c copies
		c.begin()()
		stop := make(chan struct{})
		over := waitIdle(&c, time.Hour, time.Hour, stop)
		waits(t, over)
		close(stop)
		<-over
	})
	t.Run("ItDoesNotWaitForEver", func(t *testing.T) {
		var c copies
		defer c.begin()()
		<-waitIdle(&c, time.Hour, 5*time.Millisecond, nil)
	})
}
