// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnIdleTaskIsTriedUntilItIsDone(t *testing.T) {
	for name, tt := range map[string]struct {
		succeeds int64 // the try that does
		want     int64
	}{
		"AtOnce": {1, 1},
		"Later":  {4, 4},
		"Never":  {100, idleTries},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tried atomic.Int64
				i := idleTask{burst: 2, quiet: time.Second, do: func() bool { return tried.Add(1) >= tt.succeeds }}
				defer i.close()
				i.used()
				time.Sleep(time.Hour)
				synctest.Wait()
				if tries := tried.Load(); tries != 0 {
					t.Errorf("%d tries after less than a burst", tries)
				}
				i.used()
				time.Sleep(time.Hour)
				synctest.Wait()
				if tries := tried.Load(); tries != tt.want {
					t.Errorf("%d tries, want %d", tries, tt.want)
				}
			})
		})
	}
}

func TestWorkHoldsUpAnIdleTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Bool
		i := idleTask{burst: 1, quiet: time.Second, do: func() bool { done.Store(true); return true }}
		defer i.close()
		for range 10 {
			i.used()
			time.Sleep(time.Second - time.Millisecond)
			synctest.Wait()
			if done.Load() {
				t.Fatal("it was done between work and work")
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !done.Load() {
			t.Error("it was not done after work")
		}
	})
}
