// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// LogRedactor keeps the values of secrets out of a log. Whoever makes the log makes it, and
// gives it to an engine, which tells it each value that it opens. The latest of them are
// known, also when they were changed meanwhile: what runs may still have them. It is safe
// for concurrent use.
type LogRedactor struct {
	known redactor

	mu    sync.Mutex
	order []openSecret // of what is known, the oldest first
	have  map[shown]struct{}
	size  int // bytes of the values
}

// shown is a value that must not be shown, and whose it is.
type shown struct{ name, value string }

// maxShown bounds the values that a log is kept free of, in bytes; their spellings take
// a dozen times as much.
const maxShown = 1 << 20

// hide adds values.
func (l *LogRedactor) hide(secrets []openSecret) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range secrets {
		key := shown{s.Name, s.Value}
		if _, ok := l.have[key]; ok {
			continue
		}
		if l.have == nil {
			l.have = make(map[shown]struct{})
		}
		l.have[key] = struct{}{}
		l.order = append(l.order, s)
		l.size += len(s.Value)
		l.known.add([]openSecret{s})
	}
	n := 0
	for ; l.size > maxShown; n++ {
		old := l.order[n]
		l.size -= len(old.Value)
		delete(l.have, shown{old.Name, old.Value})
		l.known.drop([]openSecret{old})
	}
	l.order = slices.Delete(l.order, 0, n)
}

// Handler gives h what it gets, without the values.
func (l *LogRedactor) Handler(h slog.Handler) slog.Handler {
	return hushHandler{Handler: h, known: &l.known}
}

type hushHandler struct {
	slog.Handler
	known *redactor
}

func (h hushHandler) Handle(ctx context.Context, rec slog.Record) error {
	if h.known.empty() {
		return h.Handler.Handle(ctx, rec)
	}
	out := slog.NewRecord(rec.Time, rec.Level, h.known.redact(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h hushHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = h.attr(a)
	}
	return hushHandler{h.Handler.WithAttrs(out), h.known}
}

func (h hushHandler) WithGroup(name string) slog.Handler {
	return hushHandler{h.Handler.WithGroup(name), h.known}
}

// attr takes the values out of an attribute. What is no text is looked at as it would be
// printed, and stays what it is where there is none in it.
func (h hushHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.known.redact(v.String()))
	case slog.KindGroup:
		group := v.Group()
		out := make([]slog.Attr, len(group))
		for i, g := range group {
			out[i] = h.attr(g)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(out...)}
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if clean := h.known.redact(text); clean != text {
			return slog.String(a.Key, clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}
