// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package redactlog keeps the values of secrets out of a log. It is a package of its own since
// log/slog is as large as it is: the agent links package redact.
package redactlog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"sandpit.dev/redact"
)

// Log keeps the values of secrets out of a log. It knows the latest values that it was
// told, also those that were changed since: what runs may still have them. A Log is safe
// for concurrent use.
type Log struct {
	known *redact.Labels

	mu    sync.Mutex
	order []redact.Secret // what is known, the oldest first
	have  map[redact.Secret]struct{}
	size  int // bytes of the values
}

// maxKnown bounds the values that a log is kept free of, in bytes; their spellings take
// more than a dozen times as much.
const maxKnown = 1 << 20

// New returns a Log that knows no value.
func New() *Log {
	return &Log{known: redact.NewLabels(redact.LogLine), have: make(map[redact.Secret]struct{})}
}

// Add tells it of secrets.
func (l *Log) Add(secrets ...redact.Secret) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range secrets {
		if _, ok := l.have[s]; ok {
			continue
		}
		l.have[s] = struct{}{}
		l.order = append(l.order, s)
		l.size += len(s.Value)
		l.known.Add(s)
	}
	n := 0
	for ; l.size > maxKnown; n++ {
		old := l.order[n]
		l.size -= len(old.Value)
		delete(l.have, old)
		l.known.Remove(old)
	}
	l.order = slices.Delete(l.order, 0, n)
}

// Redact returns text without the values.
func (l *Log) Redact(text string) string { return l.known.String(text) }

// Handler returns a handler that passes records to h without the values.
func (l *Log) Handler(h slog.Handler) slog.Handler {
	return logHandler{Handler: h, known: l.known}
}

type logHandler struct {
	slog.Handler
	known *redact.Labels
}

func (h logHandler) Handle(ctx context.Context, rec slog.Record) error {
	if h.known.Empty() {
		return h.Handler.Handle(ctx, rec)
	}
	out := slog.NewRecord(rec.Time, rec.Level, h.known.String(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = h.attr(a)
	}
	return logHandler{h.Handler.WithAttrs(out), h.known}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name), h.known}
}

// attr returns an attribute without the values. What is no text is looked at as it would be
// printed, and stays what it is where it has no value in it.
func (h logHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.known.String(v.String()))
	case slog.KindGroup:
		group := v.Group()
		out := make([]slog.Attr, len(group))
		for i, g := range group {
			out[i] = h.attr(g)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(out...)}
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if clean := h.known.String(text); clean != text {
			return slog.String(a.Key, clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}
