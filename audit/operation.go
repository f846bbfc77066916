// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
)

// Operation is a call on its way through the server: what records of what it does say of where it came from.
// It is safe for concurrent use, once its fields are set.
type Operation struct {
	Caller   access.Caller // zero: nobody is known
	Name     string        // of the operation, or the tool; empty: it is not recorded by itself
	Recorded bool          // whether it is recorded by itself where no event is: it changes or reads content
	Watched  bool          // it only reads, and is asked again and again by who looks on: it is recorded once a minute
	Target   string        // the sandbox that it is about, by id or key; it may be empty

	mu     sync.Mutex
	events int // records of what it did
}

// Answer is how an operation was answered.
type Answer struct {
	Type      sandbox.EventType // [Call] or [Tool]
	Path      string            // of the request, without its query
	Status    int
	Err       error // nil: it was done
	Took      time.Duration
	Bytes     int64 // of the answer
	Presented bool  // a token was, valid or not
}

type operationKey struct{}

// With returns a context of an operation.
func With(ctx context.Context, o *Operation) context.Context {
	return context.WithValue(ctx, operationKey{}, o)
}

// Of returns the operation that a context belongs to, or nil.
func Of(ctx context.Context) *Operation {
	o, _ := ctx.Value(operationKey{}).(*Operation)
	return o
}

// Did reports whether an event can be the operation's doing: it was the same token, in the same project.
func (o *Operation) Did(ev *sandbox.Event) bool {
	return ev.Actor == o.Caller.Actor && ev.Project == o.Caller.Project
}

// Describe says in a record where it came from.
func (o *Operation) Describe(r *Record) {
	c := o.Caller
	r.Token, r.Address, r.Request, r.Call = c.TokenID, c.Address, c.RequestID, o.Name
	if r.Actor == "" {
		r.Actor, r.Via = c.Actor, c.Via
	}
	if r.Project == "" {
		r.Project = c.Project
	}
}

// Tell counts a record of what the operation did, which tells of the operation, too.
func (o *Operation) Tell() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events++
}

// Told reports whether there are such records.
func (o *Operation) Told() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events > 0
}
