// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/internal/leaktest"
)

// What is made ahead is counted: after many sandboxes, and after kills of the server,
// there is as much of it as before.
func TestLeakOfWhatIsMadeAhead(t *testing.T) {
	h := open(t)
	h.kill()
	config := filepath.Join(h.dir, "sandpit.yaml")
	if err := os.WriteFile(config, []byte("pools: [{min: 3}, {image: python, min: 2, max: 4, refill: 2}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.env = []string{"SANDPIT_POOL=", "SANDPIT_CONFIG=" + config}
	h.start()
	const up = 3 + 2 // processes 1 of the pools
	if err := h.steady(t.Context(), up); err != nil {
		t.Fatal(err)
	}
	before := h.look()
	for range length(3, 30) {
		g := group{limit: 4}
		for range 12 {
			g.do(func() error { return h.cycle(t.Context()) })
		}
		if err := g.wait(); err != nil {
			t.Fatal(err)
		}
		for range 6 { // and some in peace, which find what is ready
			<-time.After(200 * time.Millisecond)
			if err := h.cycle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		h.kill()
		h.start()
	}
	if err := h.steady(t.Context(), up); err != nil {
		t.Fatal(err)
	}
	after := h.look()
	t.Logf("before: %v", before)
	t.Logf("after:  %v", after)
	for _, k := range []leaktest.Kind{leaktest.Processes, leaktest.Mounts, leaktest.Cgroups, leaktest.Namespaces, leaktest.Sockets, leaktest.Loops} {
		if b, a := before.Count(k), after.Count(k); a > b {
			t.Errorf("of each %s there were %d, and there are %d", k, b, a)
		}
	}
}

// steady waits until n sandboxes' first processes are there, and nothing more is made: groups
// and namespaces are made ahead after them.
func (h *host) steady(ctx context.Context, n int) error {
	limit, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var was string
	for calm := 0; calm < 10; {
		now := h.look()
		got, is := now.Count(leaktest.Processes), now.String()
		if calm++; got != n || is != was {
			calm = 0
		}
		was = is
		select {
		case <-limit.Done():
			return fmt.Errorf("there are %d processes, not %d:\n%v", got, n, h.look()[leaktest.Processes])
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}
