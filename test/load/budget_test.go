// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// ledger is what the sandboxes of a budget's project ran, by what their own records say.
type ledger struct {
	h    *host
	refs []string
	gone float64 // processor seconds of those that are deleted
}

// ran returns the processor seconds of all of them.
func (l *ledger) ran(t *testing.T) (sum float64) {
	t.Helper()
	sum = l.gone
	for _, ref := range l.refs {
		s, err := l.h.client.Get(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		sum += s.RunSeconds * s.CPUCores
	}
	return sum
}

// checked returns what is used of the budget. It is what the records say: nothing is lost, and nothing is counted twice.
func (l *ledger) checked(t *testing.T, after string) float64 {
	t.Helper()
	begin := time.Now().UTC()
	least := l.ran(t)
	r, err := l.h.client.Usage(t.Context(), client.UsageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.h.client.Project(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	most := l.ran(t)
	if begin.Month() != time.Now().UTC().Month() || begin.Add(-time.Hour).Month() != begin.Month() {
		t.Skip("a month begins, and with it budgets")
	}
	used := 0.0
	for _, u := range r.Items {
		used += u.CPUSeconds
	}
	const rounded = 0.01 // of seconds on records, and of their sums
	if used < least-rounded || used > most+rounded {
		t.Errorf("after %s: %.3f s are used of processors, and by their records sandboxes ran for %.3f to %.3f", after, used, least, most)
	}
	if of := p.Used.CPUSecondsPerMonth; of == nil || float64(*of) < least-1 || float64(*of) > most+1 {
		t.Errorf("after %s: the project says %v, and by their records sandboxes ran for %.3f to %.3f", after, of, least, most)
	}
	return used
}

// A server is killed while sandboxes run, start, stop and go, and comes again. What is used of the month's budget is exactly
// what they ran, as long as it was up or not; and what is used up stays used up.
func TestABudgetHoldsAcrossKills(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	budget := func(seconds int64) {
		t.Helper()
		if _, err := h.client.UpdateProject(ctx, "default", v1.UpdateProject{Quotas: &v1.Amounts{CPUSecondsPerMonth: &seconds}}); err != nil {
			t.Fatal(err)
		}
	}
	budget(1e9)
	l := &ledger{h: h}
	small := v1.CreateSandbox{CPUCores: new(1.0), MemoryMB: new(64), DiskMB: new(64), Pids: new(16)}
	add := func() string {
		t.Helper()
		s, _, err := h.client.Create(ctx, small)
		if err != nil {
			t.Fatal(err)
		}
		l.refs = append(l.refs, s.ID)
		return s.ID
	}
	idle := add() // runs all the time
	for range 3 {
		add()
	}
	used := l.checked(t, "the creates")
	for range length(3, 20) {
		g := group{limit: 8}
		storm, end := context.WithCancel(ctx) // what is cut off is not tried again
		cl := h.client
		for _, ref := range l.refs[1:] {
			g.do(func() error {
				for storm.Err() == nil { // until it is cut off, at a place that nobody chooses
					_, _ = cl.Stop(storm, ref)
					_, _ = cl.Start(storm, ref)
				}
				return nil
			})
		}
		// The kill comes when the idle one has run for another second.
		now, err := h.client.Get(ctx, idle)
		if err != nil {
			end()
			t.Fatal(err)
		}
		for until := now.RunSeconds + 1; now.RunSeconds < until; {
			if now, err = h.client.Get(ctx, idle); err != nil {
				end()
				t.Fatal(err)
			}
		}
		h.kill()
		end()
		if err := g.wait(); err != nil {
			t.Fatal(err)
		}
		h.start()
		next := l.checked(t, "a kill")
		if next < used+1 {
			t.Errorf("after a kill: %.3f s are used, and before it %.3f were, and one sandbox ran for a second more", next, used)
		}
		used = next
	}
	// One goes, with what it ran.
	last := l.refs[len(l.refs)-1]
	_, err := h.client.Stop(ctx, last)
	if err != nil && !fault.Is(err, fault.State) {
		t.Fatal(err)
	}
	s, err := h.client.Get(ctx, last)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.client.Delete(ctx, last); err != nil {
		t.Fatal(err)
	}
	l.gone, l.refs = s.RunSeconds*s.CPUCores, l.refs[:len(l.refs)-1]
	h.kill()
	h.start()
	l.checked(t, "a kill behind a delete")

	// A budget that is used up is so for the next server, too.
	stopped := l.refs[1]
	if _, err := h.client.Stop(ctx, stopped); err != nil && !fault.Is(err, fault.State) {
		t.Fatal(err)
	}
	budget(1)
	refused := func(of string) {
		t.Helper()
		_, _, create := h.client.Create(ctx, small)
		_, start := h.client.Start(ctx, stopped)
		for what, err := range map[string]error{"a create": create, "a start": start} {
			if !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "cpu_seconds_per_month") {
				t.Errorf("%s by %s: %v", what, of, err)
			}
		}
	}
	refused("the server that set it")
	h.kill()
	h.start()
	refused("the next server")
	l.checked(t, "the refusals")
	budget(1e9)
	add()
}
