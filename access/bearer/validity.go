// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/access"
)

// Admit is [Authority.Check] for a request that may take long: valid ends when the token
// has expired or was deleted, and its cause is the error that Check returns from then on.
// The server's own admin tokens end with the server. The caller calls release once.
func (a *Authority) Admit(ctx context.Context, token string) (_ access.Caller, valid context.Context, release func(), _ error) {
	none := func(err error) (access.Caller, context.Context, func(), error) {
		return access.Caller{}, nil, nil, err
	}
	c, t, err := a.check(ctx, token)
	switch {
	case err != nil:
		return none(err)
	case t == nil:
		return c, context.Background(), func() {}, nil
	}
	valid, release = a.validities.hold(t.ID, func() (time.Duration, error) { return a.left(t) })
	// Between the check and the hold the token may have been deleted. Delete empties the
	// cache before it ends what is held: one that is still cached is held in time.
	if a.cache.get(digestOf(token)) == nil {
		if _, err := a.Check(ctx, token); err != nil {
			release()
			return none(err)
		}
	}
	return c, valid, release, nil
}

// left returns how long a token is still valid, less than zero for ever, and an error if it has
// expired.
func (a *Authority) left(t *access.Token) (time.Duration, error) {
	if t.ExpiresAt.IsZero() {
		return -1, nil
	}
	now := a.now()
	if t.Expired(now) {
		return 0, expired(t)
	}
	return t.ExpiresAt.Sub(now), nil
}

func expired(t *access.Token) error {
	return refuse("the bearer token %q expired at %s", t.Name, t.ExpiresAt.Format(time.RFC3339))
}

// deleted returns the reason with which the contexts of a deleted token end.
func deleted() error { return refuse("the bearer token was deleted") }

// validities are the contexts of tokens that requests hold now.
type validities struct {
	mu   sync.Mutex
	byID map[string]*validity
}

// validity is the context of one token, shared by its holders.
type validity struct {
	ctx    context.Context
	end    context.CancelCauseFunc
	held   int
	expiry *time.Timer // nil: the token does not expire
}

func (v *validities) init() { v.byID = make(map[string]*validity) }

// hold returns a token's context. It calls left for how long the token is still valid, and again
// when that time has passed, since the host's clock may have been set.
func (v *validities) hold(id string, left func() (time.Duration, error)) (context.Context, func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.byID[id]
	if h == nil {
		h = &validity{}
		h.ctx, h.end = context.WithCancelCause(context.Background())
		v.byID[id] = h
		if d, err := left(); err != nil {
			h.end(err)
		} else if d >= 0 {
			h.expiry = time.AfterFunc(d, func() { v.expire(id, h, left) })
		}
	}
	h.held++
	return h.ctx, sync.OnceFunc(func() { v.release(id, h) })
}

func (v *validities) expire(id string, h *validity, left func() (time.Duration, error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byID[id] != h {
		return
	}
	switch d, err := left(); {
	case err != nil:
		v.endLocked(id, h, err)
	case d >= 0:
		h.expiry.Reset(d)
	}
}

func (v *validities) release(id string, h *validity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h.held--; h.held == 0 && v.byID[id] == h {
		v.endLocked(id, h, nil) // no request is left to see it
	}
}

// end ends a token's context.
func (v *validities) end(id string, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.byID[id]; h != nil {
		v.endLocked(id, h, why)
	}
}

func (v *validities) endLocked(id string, h *validity, why error) {
	delete(v.byID, id)
	if h.expiry != nil {
		h.expiry.Stop()
	}
	h.end(why)
}
