// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"fmt"
	"sync"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

func TestSharedKeyRace(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	const calls, rounds = 100, 3
	for round := range rounds {
		key := fmt.Sprintf("shared %d", round)
		var mu sync.Mutex
		ids := map[string]int{}
		made := 0
		start := make(chan struct{})
		g := group{limit: calls}
		for range calls {
			g.do(func() error {
				<-start
				box, created, err := h.client.Create(ctx, v1.CreateSandbox{Key: &key})
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				ids[box.ID]++
				if created {
					made++
				}
				return nil
			})
		}
		close(start)
		if err := g.wait(); err != nil {
			t.Fatal(err)
		}
		if len(ids) != 1 || made != 1 {
			t.Errorf("%d concurrent creates of one key: got sandboxes %v, of which %d were answered 201; want one and 1", calls, ids, made)
		}
		if err := h.says(ctx, key, "echo $((6*7))", "42\n"); err != nil {
			t.Error(err)
		}
	}
	page, err := h.client.ListPage(ctx, client.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if page.Total != rounds {
		t.Errorf("sandboxes: got %d, want %d", page.Total, rounds)
	}
}
