// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package trace makes spans: what a request did, and when, for a tracing system. A span travels in a context, and what
// is done with that makes children of it. Without a [Tracer] there are none: a nil tracer and a nil span do
// nothing and cost nothing. It knows neither whose spans they are nor where they go.
package trace

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"
	"unicode/utf8"
)

// Kind is on which side of a call a span is; the values are those of OpenTelemetry.
type Kind int

// Kinds.
const (
	Internal Kind = 1
	Server   Kind = 2
)

// TraceID and SpanID are the ids of W3C's Trace Context; zero is none.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// Attribute is something that is known of a span. Its Value is a string, an int64, a float64 or a bool.
type Attribute struct {
	Key   string
	Value any
}

// Event is something that happened in a span.
type Event struct {
	Name       string
	At         time.Time
	Attributes []Attribute
}

// Bounds of a span; what is beyond is left out.
const (
	MaxAttributes = 64
	MaxEvents     = 64
	MaxText       = 4 << 10 // bytes of a text
)

// Data is what is told of a span that ended.
type Data struct {
	Trace      TraceID
	ID, Parent SpanID
	State      string // of the caller, see tracestate; it goes on unread
	Name       string
	Kind       Kind
	Begin, End time.Time
	Failed     bool
	Attributes []Attribute
	Events     []Event
}

// Options of a [Tracer].
type Options struct {
	// Sample is the share of the traces that begin here which is kept, 0 to 1. A caller's trace is kept where the caller keeps it.
	Sample float64
	// Export gets each span that ended. It must not block, and may keep what it gets.
	Export func(*Data)
}

// Tracer begins traces. Nil begins none. It is safe for concurrent use.
type Tracer struct {
	o Options
}

// New returns a tracer.
func New(o Options) *Tracer { return &Tracer{o} }

// Span is something that goes on. Nil does nothing. It is safe for concurrent use.
type Span struct {
	t *Tracer

	mu    sync.Mutex
	data  Data
	ended bool
}

type (
	key       struct{}
	tracerKey struct{} // of the tracer, where no trace is kept
)

// Begin begins a span for a call of somebody else, whose headers traceparent and tracestate say which trace it is part of: an
// invalid one is as none. Where the trace is not kept the span is nil.
func (t *Tracer) Begin(ctx context.Context, name, parent, state string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	id, of, sampled, ok := parse(parent)
	if !ok {
		id, of, state, sampled = newTraceID(), SpanID{}, "", t.sampled()
	}
	if !sampled {
		return t.without(ctx), nil
	}
	return t.of(ctx, name, id, of, state)
}

// of begins a span in a caller's trace.
func (t *Tracer) of(ctx context.Context, name string, id TraceID, of SpanID, state string) (context.Context, *Span) {
	if len(state) > maxState {
		state = ""
	}
	s := t.begin(Data{Trace: id, Parent: of, State: state, Name: name, Kind: Server, Begin: time.Now()})
	return With(ctx, s), s
}

// without returns a context for which it is decided that no trace is kept.
func (t *Tracer) without(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, key{}, (*Span)(nil)), tracerKey{}, t)
}

// Continue is [Start] for a call within a request that says itself which trace it is part of: then it is in that one, and is
// kept if that is. Where parent is none, or is invalid, it is Start.
func Continue(ctx context.Context, name, parent, state string) (context.Context, *Span) {
	id, of, sampled, ok := parse(parent)
	t, _ := ctx.Value(tracerKey{}).(*Tracer)
	if s := Of(ctx); s != nil {
		t = s.t
	}
	switch {
	case !ok || t == nil:
		return Start(ctx, name)
	case !sampled:
		return t.without(ctx), nil
	}
	return t.of(ctx, name, id, of, state)
}

// Root begins a span of what nobody asked for.
func (t *Tracer) Root(name string, at time.Time) *Span {
	if t == nil || !t.sampled() {
		return nil
	}
	return t.begin(Data{Trace: newTraceID(), Name: name, Kind: Internal, Begin: at})
}

func (t *Tracer) begin(d Data) *Span {
	d.ID = newSpanID()
	return &Span{t: t, data: d}
}

func (t *Tracer) sampled() bool {
	return t.o.Sample >= 1 || t.o.Sample > 0 && rand.Float64() < t.o.Sample
}

// With returns a context whose spans are children of s.
func With(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, s)
}

// Of returns the span that a context is in, or nil.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(key{}).(*Span)
	return s
}

// Decided reports whether ctx is of a request for which a tracer decided, also where it keeps no trace of it.
func Decided(ctx context.Context) bool {
	_, ok := ctx.Value(key{}).(*Span)
	return ok
}

// Start begins a child of the span that ctx is in; nil where it is in none.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	s := Of(ctx).Child(name, Internal, time.Now())
	return With(ctx, s), s
}

// Child begins a span within s.
func (s *Span) Child(name string, kind Kind, at time.Time) *Span {
	if s == nil {
		return nil
	}
	// Of its parent only what never changes is read.
	return s.t.begin(Data{Trace: s.data.Trace, Parent: s.data.ID, State: s.data.State, Name: name, Kind: kind, Begin: at})
}

// Name gives the span another name.
func (s *Span) Name(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Name = name
}

// Text sets an attribute; an empty one is left out.
func (s *Span) Text(key, value string) {
	if s != nil && value != "" {
		s.set(key, clip(value))
	}
}

// Int sets an attribute.
func (s *Span) Int(key string, n int64) {
	if s != nil {
		s.set(key, n)
	}
}

// Bool sets an attribute.
func (s *Span) Bool(key string, v bool) {
	if s != nil {
		s.set(key, v)
	}
}

func (s *Span) set(key string, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && len(s.data.Attributes) < MaxAttributes {
		s.data.Attributes = append(s.data.Attributes, Attribute{key, v})
	}
}

// Event notes that something happened.
func (s *Span) Event(name string, at time.Time, attributes ...Attribute) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && len(s.data.Events) < MaxEvents {
		s.data.Events = append(s.data.Events, Event{name, at, attributes})
	}
}

// Fail says that what went on failed, and in which way: a word of a fixed set, and never a message, which may hold
// what a caller sent.
func (s *Span) Fail(kind string) {
	if s == nil {
		return
	}
	s.Text("error.type", kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Failed = true
}

// End ends the span. Twice is fine.
func (s *Span) End() { s.EndAt(time.Now()) }

// EndAt ends the span at a time.
func (s *Span) EndAt(at time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended, s.data.End = true, at
	d := s.data
	s.mu.Unlock()
	s.t.o.Export(&d)
}

// TraceID returns the id of the trace that the span is of, as logs have it; "": there is none.
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	return s.data.Trace.String()
}

func newTraceID() (id TraceID) {
	for id == (TraceID{}) {
		binary.BigEndian.PutUint64(id[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id SpanID) {
	for id == (SpanID{}) {
		binary.BigEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// clip returns at most MaxText bytes of a text, as valid UTF-8.
func clip(s string) string {
	if len(s) > MaxText {
		s = s[:MaxText]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if r, n := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && n == 1 {
			s = s[:len(s)-1]
		}
	}
	return valid(s)
}
