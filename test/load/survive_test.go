// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/client"
)

// mostAlive bounds how many sandboxes a round leaves to the next.
const mostAlive = 12

func TestSurviveKill9(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	warm := group{limit: workers}
	for range workers {
		warm.do(func() error { return h.cycle(ctx) })
	}
	if err := warm.wait(); err != nil {
		t.Fatal(err)
	}
	h.http.CloseIdleConnections()
	before := h.rest()

	p := newPromises(h)
	var down time.Duration
	acts := 0
	rounds := length(8, 2000)
	for round := range rounds {
		n, err := h.killedUnder(ctx, p, round)
		acts += n
		if err != nil {
			t.Fatalf("round %d, before the kill: %v", round, err)
		}
		began := time.Now()
		h.start()
		down += time.Since(began)
		if err := p.kept(ctx, h.client); err != nil {
			t.Fatalf("round %d, after the kill: %v", round, err)
		}
		if err := h.thin(ctx, p); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	t.Logf("%d kills among %d calls; ready again after %v on average; at the end %d sandboxes, %d deleted",
		rounds, acts, (down / time.Duration(rounds)).Round(time.Millisecond), len(p.boxes), len(p.dead))
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	page, err := h.client.ListPage(ctx, client.ListQuery{})
	if err != nil || page.Total != 0 {
		t.Errorf("after deleting all: %d sandboxes, %v", page.Total, err)
	}
	h.holdNothingBeyond(before)
}

// killedUnder loads the server and kills it at a random moment of a random call. It returns how
// many calls were made.
func (h *host) killedUnder(ctx context.Context, p *promises, round int) (int, error) {
	const callers = 4
	at := int64(rand.IntN(30) + callers)
	var calls atomic.Int64
	doomed := make(chan struct{})
	var once sync.Once
	c := h.client
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := group{limit: callers}
	for caller := range callers {
		g.do(func() error {
			for {
				n := calls.Add(1)
				if n >= at {
					once.Do(func() { close(doomed) })
				}
				answered, err := p.act(ctx, c, fmt.Sprintf("r%d-c%d-n%d", round, caller, n))
				if err != nil || !answered {
					once.Do(func() { close(doomed) })
					return err
				}
			}
		})
	}
	<-doomed
	// A call takes a few milliseconds: this makes the moment within it random.
	time.Sleep(time.Duration(rand.Int64N(int64(6 * time.Millisecond))))
	h.kill()
	cancel() // the client would repeat what broke off
	return int(calls.Load()), g.wait()
}

// thin deletes what is beyond mostAlive, and what no promise is known of.
func (h *host) thin(ctx context.Context, p *promises) error {
	for box, err := range h.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			return err
		}
		if p.boxes[box.ID] != nil && len(p.boxes) <= mostAlive {
			continue
		}
		if err := h.client.Delete(ctx, box.ID); err != nil {
			return err
		}
		delete(p.boxes, box.ID)
		p.dead[box.ID] = true
	}
	return nil
}
