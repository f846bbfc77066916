// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"context"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

type contextKey struct{}

// Context returns a context whose Updates of a [Keys.Store] are of the call.
func (c *Call) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// Carry returns ctx as a context of the call that from is of, if any: for work that goes on
// in a goroutine of another's.
func Carry(ctx, from context.Context) context.Context {
	if c := callOf(from); c != nil {
		return c.Context(ctx)
	}
	return ctx
}

func callOf(ctx context.Context) *Call {
	c, _ := ctx.Value(contextKey{}).(*Call)
	return c
}

// Store returns the store, whose Updates write down what a keyed request makes.
func (k *Keys) Store() store.Store { return notingStore{k.store} }

type notingStore struct{ store.Store }

func (s notingStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	c := callOf(ctx)
	if c == nil {
		return s.Store.Update(ctx, fn)
	}
	var made string
	err := s.Store.Update(ctx, func(tx store.Tx) error {
		n := &notes{makes: c.makes}
		if err := fn(notingTx{tx, n}); err != nil {
			return err
		}
		if made = n.made.String(); made == "" {
			return nil
		}
		r := c.begun()
		r.Made = made
		return tx.Requests().Put(&r)
	})
	if err == nil && made != "" {
		c.note(made)
	}
	return err
}

// begun is the record of a request that has no answer yet.
func (c *Call) begun() store.KeyedRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record
	r.Status, r.Header, r.Answer = 0, "", nil
	return r
}

func (c *Call) note(made string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Made += made
}

// notes are what one transaction makes, a line each.
type notes struct {
	makes []Kind
	made  strings.Builder
}

func (n *notes) add(err error, k Kind, id string, in sandbox.ID) error {
	if err != nil || !slices.Contains(n.makes, k) {
		return err
	}
	n.made.WriteString(string(k) + " " + id)
	if in != "" {
		n.made.WriteString(" " + string(in))
	}
	n.made.WriteByte('\n')
	return nil
}

// things reads what notes wrote.
func things(made string) []Thing {
	var out []Thing
	for line := range strings.Lines(made) {
		if f := strings.Fields(line); len(f) == 2 {
			out = append(out, Thing{Kind: Kind(f[0]), ID: f[1]})
		} else if len(f) == 3 {
			out = append(out, Thing{Kind: Kind(f[0]), ID: f[1], Sandbox: sandbox.ID(f[2])})
		}
	}
	return out
}

type notingTx struct {
	store.Tx
	n *notes
}

func (t notingTx) Sandboxes() store.Sandboxes { return notingSandboxes{t.Tx.Sandboxes(), t.n} }
func (t notingTx) Events() store.Events       { return notingEvents{t.Tx.Events(), t.n} }
func (t notingTx) Snapshots() store.Snapshots { return notingSnapshots{t.Tx.Snapshots(), t.n} }
func (t notingTx) Volumes() store.Volumes     { return notingVolumes{t.Tx.Volumes(), t.n} }
func (t notingTx) Runs() store.Runs           { return notingRuns{t.Tx.Runs(), t.n} }
func (t notingTx) Contexts() store.Contexts   { return notingContexts{t.Tx.Contexts(), t.n} }
func (t notingTx) Tokens() store.Tokens       { return notingTokens{t.Tx.Tokens(), t.n} }

type notingSandboxes struct {
	store.Sandboxes
	n *notes
}

func (q notingSandboxes) Insert(s *sandbox.Sandbox) error {
	return q.n.add(q.Sandboxes.Insert(s), Sandbox, string(s.ID), "")
}

type notingEvents struct {
	store.Events
	n *notes
}

// Append notes the intent of a command; kernels of code are not results of a request.
func (q notingEvents) Append(e *sandbox.Event) error {
	err := q.Events.Append(e)
	switch e.Type {
	case sandbox.EventStarted, sandbox.EventStopped, sandbox.EventPaused, sandbox.EventResumed, sandbox.EventRestored, sandbox.EventArchived, sandbox.EventPromoted:
		return q.n.add(err, Change, string(e.Type), e.Sandbox)
	}
	if e.Done || e.ProcessID == "" || e.Type == sandbox.EventContext || e.Type == sandbox.EventLanguageServer {
		return err
	}
	return q.n.add(err, Process, e.ProcessID, e.Sandbox)
}

type notingSnapshots struct {
	store.Snapshots
	n *notes
}

func (q notingSnapshots) Insert(s *sandbox.Snapshot) error {
	return q.n.add(q.Snapshots.Insert(s), Snapshot, string(s.ID), "")
}

type notingVolumes struct {
	store.Volumes
	n *notes
}

func (q notingVolumes) Insert(v *sandbox.Volume) error {
	return q.n.add(q.Volumes.Insert(v), Volume, string(v.ID), "")
}

type notingRuns struct {
	store.Runs
	n *notes
}

func (q notingRuns) Insert(r *sandbox.Run) error {
	return q.n.add(q.Runs.Insert(r), Run, r.ID, "")
}

type notingContexts struct {
	store.Contexts
	n *notes
}

func (q notingContexts) Insert(c *sandbox.Context) error {
	return q.n.add(q.Contexts.Insert(c), Context, c.ID, c.Sandbox)
}

type notingTokens struct {
	store.Tokens
	n *notes
}

func (q notingTokens) Insert(t *access.Token) error {
	return q.n.add(q.Tokens.Insert(t), Token, t.ID, "")
}
