// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"

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
