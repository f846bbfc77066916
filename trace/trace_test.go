// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"sandpit.dev/trace"
)

// kept collects spans.
type kept struct {
	mu  sync.Mutex
	all []*trace.Data
}

func (k *kept) add(d *trace.Data) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, d)
}

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestACallersTraceGoesOn(t *testing.T) {
	var k kept
	tr := trace.New(trace.Options{Export: k.add}) // keeps none of its own
	ctx, s := tr.Begin(t.Context(), "request", parent, "vendor=1")
	inner, child := trace.Start(ctx, "verb")
	trace.Of(inner).Event("committed", time.Now(), trace.Attribute{Key: "n", Value: int64(3)})
	child.Text("sandbox", "abc")
	child.Text("nothing", "")
	child.Fail("not_found")
	child.End()
	child.End()
	child.Text("late", "x")
	s.Name("GET /x")
	s.End()
	if len(k.all) != 2 {
		t.Fatalf("got %d spans", len(k.all))
	}
	c, r := k.all[0], k.all[1]
	if r.Trace.String() != "4bf92f3577b34da6a3ce929d0e0e4736" || c.Trace != r.Trace || c.Parent != r.ID || r.Parent == (trace.SpanID{}) || r.State != "vendor=1" || c.State != "vendor=1" {
		t.Errorf("got %+v in %+v", c, r)
	}
	if r.Name != "GET /x" || r.Kind != trace.Server || c.Kind != trace.Internal || r.Failed || !c.Failed || len(c.Attributes) != 2 || len(c.Events) != 1 || c.End.Before(c.Begin) {
		t.Errorf("got %+v in %+v", c, r)
	}
	for _, also := range []string{"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff"} {
		if _, s := tr.Begin(t.Context(), "request", also, ""); s.TraceID() != r.Trace.String() {
			t.Errorf("%q is not taken", also)
		}
	}
	for _, not := range []string{strings.TrimSuffix(parent, "1") + "0", "", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"} {
		if ctx, s := tr.Begin(t.Context(), "request", not, ""); s != nil || trace.Of(ctx) != nil {
			t.Errorf("%q is kept", not)
		}
	}
}

func TestWithoutATracerNothingIsMade(t *testing.T) {
	var tr *trace.Tracer
	ctx := context.WithValue(t.Context(), struct{ x int }{}, 1)
	if n := testing.AllocsPerRun(100, func() {
		ctx, s := tr.Begin(ctx, "request", parent, "")
		inner, child := trace.Start(ctx, "verb")
		child.Text("a", "b")
		child.Int("n", 1)
		trace.Of(inner).Fail("x")
		trace.With(inner, nil)
		child.End()
		s.End()
		tr.Root("r", time.Time{}).End()
	}); n != 0 {
		t.Errorf("it takes %v allocations", n)
	}
}

func TestSpansAreBounded(t *testing.T) {
	var k kept
	tr := trace.New(trace.Options{Sample: 1, Export: k.add})
	_, s := tr.Begin(t.Context(), "request", "", strings.Repeat("s", 1000))
	for range 10_000 {
		s.Text("k", strings.Repeat("é", 10_000)+"\xff")
		s.Event("e", time.Now())
	}
	s.Text("x", "\xff\xfe")
	s.End()
	d := k.all[0]
	if len(d.Attributes) != trace.MaxAttributes || len(d.Events) != trace.MaxEvents || d.State != "" {
		t.Errorf("it has %d attributes, %d events", len(d.Attributes), len(d.Events))
	}
	for _, a := range d.Attributes {
		if text := a.Value.(string); len(text) > trace.MaxText || !utf8.ValidString(text) {
			t.Errorf("a text has %d bytes", len(text))
		}
	}
}

func TestAShareIsKept(t *testing.T) {
	var k kept
	tr := trace.New(trace.Options{Sample: 0.25, Export: k.add})
	for range 4000 {
		_, s := tr.Begin(t.Context(), "request", "", "")
		s.End()
		tr.Root("clock", time.Now()).End()
	}
	if n := len(k.all); n < 1600 || n > 2400 { // 2000 ± 10 standard deviations
		t.Errorf("of 8000 it keeps %d", n)
	}
	ids := make(map[trace.TraceID]bool)
	for _, d := range k.all {
		ids[d.Trace] = true
	}
	if len(ids) != len(k.all) {
		t.Errorf("%d traces have %d ids", len(k.all), len(ids))
	}
}

func FuzzTraceparent(f *testing.F) {
	f.Add(parent)
	f.Add("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more")
	f.Add("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01")
	f.Add("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add(parent + "-x")
	f.Fuzz(func(t *testing.T, header string) {
		var k kept
		tr := trace.New(trace.Options{Export: k.add})
		_, s := tr.Begin(t.Context(), "request", header, "")
		s.End()
		for _, d := range k.all { // only a caller's trace is kept
			if !strings.Contains(header, d.Trace.String()) || d.Parent == (trace.SpanID{}) || strings.HasPrefix(header, "ff") || strings.ToLower(header[:55]) != header[:55] {
				t.Errorf("%q is taken for %+v", header, d)
			}
		}
	})
}

func TestACallWithinARequestIsOfTheTraceThatItNames(t *testing.T) {
	for _, c := range []struct {
		name, request, names string
		kept                 int // spans, that of the request among them
		in                   string
	}{
		{"OfTheRequestsTrace", parent, "", 2, "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"OfItsOwn", parent, "00-11111111111111111111111111111111-2222222222222222-01", 2, "11111111111111111111111111111111"},
		{"OfOneThatIsNotKept", parent, "00-11111111111111111111111111111111-2222222222222222-00", 1, ""},
		{"InARequestThatIsNotKept", parent[:53] + "00", "00-11111111111111111111111111111111-2222222222222222-01", 1, "11111111111111111111111111111111"},
		{"NeitherIsKept", parent[:53] + "00", "", 0, ""},
		{"Malformed", parent, "00-1111-22-01", 2, "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"OfZeros", parent, "00-00000000000000000000000000000000-2222222222222222-01", 2, "4bf92f3577b34da6a3ce929d0e0e4736"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var k kept
			tracer := trace.New(trace.Options{Sample: 1, Export: k.add})
			ctx, request := tracer.Begin(t.Context(), "request", c.request, "")
			ctx, call := trace.Continue(ctx, "call", c.names, "a=b")
			_, inner := trace.Start(ctx, "inner")
			if got := call.TraceID(); got != c.in || inner.TraceID() != c.in {
				t.Errorf("the call is in %q and what it begins in %q, want %q", got, inner.TraceID(), c.in)
			}
			call.End()
			request.End()
			if len(k.all) != c.kept {
				t.Errorf("%d spans were kept, want %d", len(k.all), c.kept)
			}
		})
	}
	if ctx, s := trace.Continue(t.Context(), "call", parent, ""); s != nil || trace.Of(ctx) != nil {
		t.Error("a span without a tracer")
	}
}
