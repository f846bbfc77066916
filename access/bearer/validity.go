// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"sandpit.dev/access"
)

// Admit is [Authority.Check] for a request that may take long: valid ends when the token
// has expired, was deleted or replaced, and its cause is the error that Check returns from then on.
// The server's own admin tokens end with the server. The caller calls release once.
func (a *Authority) Admit(ctx context.Context, token string) (_ access.Caller, valid context.Context, release func(), _ error) {
	return a.admit(digestOf(token), func() (access.Caller, *held, error) { return a.check(ctx, token) })
}

// AdmitDigest is [Authority.Admit] for who has shown the token before, and of whom its SHA-256 was kept. Tokens of single
// sandboxes are not found by it.
func (a *Authority) AdmitDigest(ctx context.Context, sum [sha256.Size]byte) (_ access.Caller, valid context.Context, release func(), _ error) {
	return a.admit(sum, func() (access.Caller, *held, error) { return a.checkDigest(ctx, sum) })
}

func (a *Authority) admit(sum digest, check func() (access.Caller, *held, error)) (_ access.Caller, valid context.Context, release func(), _ error) {
	none := func(err error) (access.Caller, context.Context, func(), error) {
		return access.Caller{}, nil, nil, err
	}
	c, t, err := check()
	switch {
	case err != nil:
		return none(err)
	case t == nil:
		return c, context.Background(), func() {}, nil
	}
	valid, release = a.validities.hold(sum, t, a.now)
	// Between the check and the hold the token may have been deleted, or rotated. Delete and Rotate
	// empty the cache before they end what is held: what is still cached is held in time.
	if a.cache.get(sum) != t {
		now, t, err := check()
		if err != nil {
			release()
			return none(err)
		}
		a.validities.shorten(sum, t, a.now)
		c = now
	}
	return c, valid, release, nil
}

// deleted returns the reason with which the contexts of a deleted token end.
func deleted() error { return refuse("the bearer token was deleted") }

// validities are the contexts of secrets that requests hold now.
type validities struct {
	mu sync.Mutex
	of map[digest]*validity
}

// validity is the context of one secret, shared by its holders.
type validity struct {
	id     string // of its token
	ctx    context.Context
	end    context.CancelCauseFunc
	holds  int
	by     *held       // as which it ends soonest
	expiry *time.Timer // nil: it does not end by itself
}

func (v *validities) init() { v.of = make(map[digest]*validity) }

// hold returns the context of a secret. It ends when the secret does by now, which is asked again
// when that time has passed, since the host's clock may have been set.
func (v *validities) hold(sum digest, by *held, now func() time.Time) (context.Context, func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.of[sum]
	if h == nil {
		h = &validity{id: by.ID}
		h.ctx, h.end = context.WithCancelCause(context.Background())
		v.of[sum] = h
	}
	h.holds++
	v.shortenLocked(sum, h, by, now)
	return h.ctx, sync.OnceFunc(func() { v.release(sum, h) })
}

// shorten has what is held by a secret end as by does, if that is sooner. A secret's time never
// becomes longer.
func (v *validities) shorten(sum digest, by *held, now func() time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.of[sum]; h != nil {
		v.shortenLocked(sum, h, by, now)
	}
}

func (v *validities) shortenLocked(sum digest, h *validity, by *held, now func() time.Time) {
	ends := by.ends()
	if h.by != nil && (ends.IsZero() || !h.by.ends().IsZero() && !ends.Before(h.by.ends())) {
		return
	}
	h.by = by
	if ends.IsZero() {
		return
	}
	if h.expiry != nil {
		h.expiry.Stop()
	}
	h.expiry = time.AfterFunc(ends.Sub(now()), func() { v.expire(sum, h, by, now) })
}

func (v *validities) expire(sum digest, h *validity, by *held, now func() time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of[sum] != h || h.by != by {
		return
	}
	at := now()
	if err := by.check(at); err != nil {
		v.endLocked(sum, h, err)
		return
	}
	h.expiry.Reset(by.ends().Sub(at))
}

func (v *validities) release(sum digest, h *validity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h.holds--; h.holds == 0 && v.of[sum] == h {
		v.endLocked(sum, h, nil) // no request is left to see it
	}
}

// end ends the contexts of all secrets of a token.
func (v *validities) end(id string, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for sum, h := range v.of {
		if h.id == id {
			v.endLocked(sum, h, why)
		}
	}
}

// endSecret ends the context of one secret.
func (v *validities) endSecret(sum digest, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.of[sum]; h != nil {
		v.endLocked(sum, h, why)
	}
}

// secretsOf returns the secrets of a token that requests hold.
func (v *validities) secretsOf(id string) (all []digest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for sum, h := range v.of {
		if h.id == id {
			all = append(all, sum)
		}
	}
	return all
}

func (v *validities) endLocked(sum digest, h *validity, why error) {
	delete(v.of, sum)
	if h.expiry != nil {
		h.expiry.Stop()
	}
	h.end(why)
}
