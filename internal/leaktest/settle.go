// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"context"
	"time"
)

// settleEvery is the pause between two looks: the kernel removes namespaces and file systems some
// time after their last reference.
const settleEvery = 50 * time.Millisecond

// Settle looks until nothing is there beyond before, or ctx is done, and returns what is left and
// the last look.
func Settle(ctx context.Context, s Scope, before Snapshot, caches []Cache) ([]string, Snapshot, error) {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for {
		now, err := Take(s)
		if err != nil {
			return nil, nil, err
		}
		left := now.Beyond(before, caches)
		if len(left) == 0 {
			return nil, now, nil
		}
		select {
		case <-ctx.Done():
			return left, now, nil
		case <-tick.C:
		}
	}
}
