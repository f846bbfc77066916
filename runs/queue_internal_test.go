// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

func TestQueues(t *testing.T) {
	n := name{"default", "a"}
	t.Run("TurnsAreInOrder", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var q queues
			first := q.join(n)
			var order []int
			for i := range 5 {
				p := q.join(n)
				go func() {
					defer p.leave()
					if err := p.wait(t.Context()); err != nil {
						t.Error(err)
					}
					order = append(order, i)
				}()
			}
			synctest.Wait()
			if err := first.wait(t.Context()); err != nil || len(order) != 0 {
				t.Errorf("the first: %v, and %v went before it", err, order)
			}
			first.leave()
			synctest.Wait()
			if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
				t.Errorf("order: %v", order)
			}
			if len(q.of) != 0 {
				t.Errorf("%d queues are left", len(q.of))
			}
		})
	})
	t.Run("ATicketThatLeavesHoldsNoneUp", func(t *testing.T) {
		var q queues
		first, second, third := q.join(n), q.join(n), q.join(n)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := second.wait(ctx); err != context.Canceled {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		second.leave()
		first.leave()
		if err := third.wait(t.Context()); err != nil {
			t.Error(err)
		}
		if err := q.join(name{"default", "b"}).wait(t.Context()); err != nil {
			t.Errorf("another name: %v", err)
		}
	})
	t.Run("NoTicketWaitsForNothing", func(t *testing.T) {
		var p *ticket
		if err := p.wait(t.Context()); err != nil {
			t.Error(err)
		}
		p.leave()
	})
}
