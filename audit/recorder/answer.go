// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"maps"
	"time"

	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Answered records an operation that is over, where no event of its doing has told of it: one that changes or reads
// content, and any that was refused for its token or its scopes.
func (r *Recorder) Answered(ctx context.Context, o *audit.Operation, a audit.Answer) {
	code := fault.Code("")
	if a.Err != nil {
		code = fault.Of(a.Err)
	}
	refused := code == fault.Unauthenticated || code == fault.Denied
	if o.Told() || code == fault.Unauthenticated && !a.Presented || !refused && (o.Name == "" || !o.Recorded) {
		return
	}
	if o.Watched && a.Err == nil && r.looksOn(o) {
		return
	}
	rec := &audit.Record{
		Type: a.Type, Outcome: audit.OK, Path: r.o.Redact(a.Path), Status: a.Status, Code: string(code), Millis: millis(a.Took), Bytes: a.Bytes,
	}
	if a.Err != nil {
		rec.Detail = r.o.Redact(fault.As(a.Err).Message)
		rec.Outcome = audit.Failed
		if refused || code == fault.Exhausted {
			rec.Outcome = audit.Denied
		}
	}
	o.Describe(rec)
	if code == fault.Unauthenticated {
		rec.Type = audit.SignIn
	}
	rec.Sandbox = r.named(ctx, rec.Project, o.Target)
	r.Add(ctx, rec)
}

// watch is a read that is asked for again and again: by whom, and of what.
type watch struct{ project, token, actor, address, call, target string }

const (
	watchEach   = time.Minute // between two rows of the same watch
	mostWatches = 4096        // that are known; reads of others are recorded each
)

// looksOn reports whether the same read was recorded within watchEach. Where it was not, it is to be now.
func (r *Recorder) looksOn(o *audit.Operation) bool {
	c, at := o.Caller, r.o.Now()
	w := watch{c.Project, c.TokenID, c.Actor, c.Address, o.Name, o.Target}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.watched[w]; ok && at.Sub(last) < watchEach && !at.Before(last) {
		return true
	}
	if len(r.watched) >= mostWatches {
		maps.DeleteFunc(r.watched, func(_ watch, last time.Time) bool { return at.Sub(last) >= watchEach || at.Before(last) })
	}
	if len(r.watched) < mostWatches {
		if r.watched == nil {
			r.watched = make(map[watch]time.Time)
		}
		r.watched[w] = at
	}
	return false
}

// named returns the id of the sandbox that an operation named by its id or key, or "" where there is none.
func (r *Recorder) named(ctx context.Context, of, target string) (id sandbox.ID) {
	if target == "" || sandbox.ValidID(target) {
		return sandbox.ID(target)
	}
	// What cannot be read is missing in the row, and the row says what was asked for all the same.
	_ = r.store.View(context.WithoutCancel(ctx), func(tx store.Tx) error {
		s, err := tx.Sandboxes().ByKey(of, target)
		if err == nil {
			id = s.ID
		}
		return err
	})
	return id
}
