// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"time"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/store/keyed"
)

// Options is what the coat is made of.
type Options struct {
	Engine Engine       // required
	Tokens Tokens       // required
	Guard  *guard.Guard // required
	// Keys are the idempotency keys of requests, whose store Engine and Tokens work on; nil:
	// no operation takes one.
	Keys *keyed.Keys
	// Backups makes backups of the server; nil: there are none.
	Backups Backups
	// Previews makes links to ports; nil: there are none.
	Previews Previews
	// Files makes links to artifacts; nil: there are none.
	Files *filelink.Links
	// MaxFile is the most bytes of one raw upload; zero: 5 GiB.
	MaxFile int64
	// Heartbeat is how often a quiet event stream, or a WebSocket, says that it is
	// alive; zero: 15 s.
	Heartbeat time.Duration
	// Stall is how long a client may take nothing of an answer before its
	// connection is cut; zero: 30 s. The guard has the same for bodies.
	Stall time.Duration
	// Memory bounds what large answers and bodies hold; nil: a budget of its own.
	Memory  *budget.Budget
	Version string // in the OpenAPI document
	// PrivateDocument has the OpenAPI document need a token, as all else does.
	PrivateDocument bool
}

// Bounds of bodies, in bytes.
const (
	maxJSON     = 1 << 20  // of most requests
	maxBigJSON  = 12 << 20 // of those that carry a file or a standard input
	maxJSONFile = 8 << 20  // of a file that is answered within JSON
)

// API is the handler of /v1 and /api/v1. It is safe for concurrent use.
type API struct {
	engine    Engine
	tokens    Tokens
	keys      *keyed.Keys
	previews  Previews
	backups   Backups
	files     *filelink.Links
	maxFile   int64
	heartbeat time.Duration
	stall     time.Duration
	memory    *budget.Budget
	versions  versions
	document  []byte
	private   bool // the document is
	handler   http.Handler

	life  context.Context // ends when the coat is closed; no request's
	close context.CancelCauseFunc
}

// New makes the coat. It starts nothing.
func New(o Options) (*API, error) {
	if o.Engine == nil || o.Tokens == nil || o.Guard == nil {
		return nil, fault.New(fault.Internal, "rest.New needs an engine, tokens and a guard")
	}
	a := &API{
		engine: o.Engine, tokens: o.Tokens, keys: o.Keys, previews: o.Previews, backups: o.Backups, files: o.Files, private: o.PrivateDocument, maxFile: o.MaxFile, heartbeat: o.Heartbeat, stall: o.Stall,
		memory: o.Memory,
	}
	a.life, a.close = context.WithCancelCause(context.Background())
	if a.maxFile <= 0 {
		a.maxFile = guard.DefaultMaxBody
	}
	if a.heartbeat <= 0 {
		a.heartbeat = 15 * time.Second
	}
	if a.stall <= 0 {
		a.stall = guard.DefaultStall
	}
	if a.memory == nil {
		a.memory = budget.New(budget.Options{})
	}
	ops := a.operations()
	doc, err := document(ops, o.Version)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the OpenAPI document cannot be made")
	}
	a.document = doc
	a.handler = a.routes(ops, o.Guard)
	return a, nil
}

// ServeHTTP answers requests for /v1/… and /api/v1/…; all else is not found.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Close ends the terminals and the waiting for commands, since a server's
// shutdown does not wait for the first and would wait long for the others. The
// commands go on. It may be called twice.
func (a *API) Close() {
	a.close(fault.New(fault.Unavailable, "the server is stopping").
		WithRemedy("ask again when it is back; sandboxes and their commands go on running"))
}

// bound gives a context for work that may take long: it ends with ctx and when
// the coat is closed.
func (a *API) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.life, func() { cancel(context.Cause(a.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// why gives the reason that ctx ended for, where err only says that it did.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && (fault.Is(err, fault.Canceled) || fault.Is(err, fault.Timeout)) {
		return cause
	}
	return err
}
