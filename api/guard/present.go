// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"time"
)

// presence is how often the guard checks whether a client is still there.
const presence = 250 * time.Millisecond

// WhilePresent returns a context that ends, too, when the client of the request that ctx
// belongs to has closed its connection, though the kernel holds some of the body unread still:
// net/http looks only behind its end. What the client sent beyond the kernel's room comes
// before its close. Call stop when the request is over.
func WhilePresent(ctx context.Context) (_ context.Context, stop func()) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		look := time.NewTicker(presence)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if hungUp(c.TCPConn) {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(); <-over }
}
