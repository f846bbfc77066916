// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
)

func TestManySandboxesAlive(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	n := length(60, 500)
	warm := group{limit: workers}
	for range workers {
		warm.do(func() error { return h.cycle(ctx) })
	}
	if err := warm.wait(); err != nil {
		t.Fatal(err)
	}
	h.http.CloseIdleConnections()
	before := h.rest()
	free, err := leaktest.Available()
	if err != nil {
		t.Fatal(err)
	}
	server, err := leaktest.PSS(h.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	var mu sync.Mutex
	var ids []string
	creates := group{limit: 4}
	for range n {
		creates.do(func() error {
			box, _, err := h.client.Create(ctx, v1.CreateSandbox{})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, box.ID)
			return nil
		})
	}
	if err := creates.wait(); err != nil {
		t.Fatalf("of %d sandboxes %d were created: %v", n, len(ids), err)
	}
	created := time.Since(began)
	answers := group{limit: 4}
	for i, id := range ids {
		answers.do(func() error {
			return h.says(ctx, id, fmt.Sprintf("echo %d > mine; cat mine; ls | wc -l", i), fmt.Sprintf("%d\n1\n", i))
		})
	}
	if err := answers.wait(); err != nil {
		t.Fatal(err)
	}

	page, err := h.client.ListPage(ctx, client.ListQuery{Status: []string{"running"}, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if page.Total != n {
		t.Errorf("running: got %d, want %d", page.Total, n)
	}
	procs, err := h.scope().Processes()
	if err != nil {
		t.Fatal(err)
	}
	var pss int64
	for _, p := range procs {
		b, err := leaktest.PSS(p.PID)
		if err != nil && !p.Dead {
			t.Fatalf("process %d (%s): %v", p.PID, p.Name, err)
		}
		pss += b
	}
	freeNow, err := leaktest.Available()
	if err != nil {
		t.Fatal(err)
	}
	serverNow, err := leaktest.PSS(h.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sandboxes alive, created in %v; each: %.2f MB of processes (PSS), %.2f MB less available on the host, %.2f MB of these in the server; %d processes; %v",
		n, created.Round(time.Millisecond), mb(pss)/float64(n), mb(free-freeNow)/float64(n), mb(serverNow-server)/float64(n), len(procs), h.look())

	began = time.Now()
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("deleted in %v", time.Since(began).Round(time.Millisecond))
	h.holdNothingBeyond(before)
}
