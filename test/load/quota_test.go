// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"sync/atomic"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// Many creates against a quota, a thousand in full, in the midst of which the server is killed and comes again: there are as many
// sandboxes as the quota says, neither more nor fewer.
func TestAQuotaHoldsAcrossAKill(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	quota, calls := length(15, 100), length(150, 500)
	if _, err := h.client.UpdateProject(ctx, "default", v1.UpdateProject{Quotas: &v1.Amounts{Sandboxes: new(int64(quota))}}); err != nil {
		t.Fatal(err)
	}
	var made, refused atomic.Int64
	storm := func(ctx context.Context, then func()) {
		t.Helper()
		g := group{limit: 100}
		for range calls {
			g.do(func() error {
				_, _, err := h.client.Create(ctx, v1.CreateSandbox{MemoryMB: new(64), DiskMB: new(64), Pids: new(16)})
				switch {
				case err == nil:
					if made.Add(1) == int64(quota/3) && then != nil {
						then()
					}
				case fault.Is(err, fault.Exhausted):
					refused.Add(1)
				}
				return nil // what was cut off by the kill tells nothing
			})
		}
		if err := g.wait(); err != nil {
			t.Fatal(err)
		}
	}
	first, end := context.WithCancel(ctx) // what is cut off is not tried again
	defer end()
	storm(first, func() { h.kill(); end() })
	if made.Load() >= int64(quota) {
		t.Fatalf("the kill came too late: %d were made", made.Load())
	}
	h.start()
	storm(ctx, nil)
	p, err := h.client.Project(ctx, "default")
	if err != nil {
		t.Fatal(err)
	}
	page, err := h.client.ListPage(ctx, client.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if page.Total != quota || *p.Used.Sandboxes != int64(quota) || *p.Left.Sandboxes != 0 {
		t.Errorf("there are %d sandboxes, %d by the project, want %d", page.Total, *p.Used.Sandboxes, quota)
	}
	if refused.Load() == 0 {
		t.Error("none was refused")
	}
}
