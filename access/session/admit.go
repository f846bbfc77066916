// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Admit returns the caller whose session a secret is of, and a context that ends when the session does, or its token's right,
// with the reason as its cause. The caller calls release at the end of the request. A secret that is not valid is
// fault.Unauthenticated. A request is a use of the session, as long as it takes.
func (v *Service) Admit(ctx context.Context, secret string) (_ access.Caller, valid context.Context, release func(), _ error) {
	none := func(err error) (access.Caller, context.Context, func(), error) {
		return access.Caller{}, nil, nil, err
	}
	ends := v.endCount()
	s, err := v.byHash(ctx, secret)
	if fault.Is(err, fault.NotFound) || err == nil && s.Code {
		return none(ended("there is none with this cookie"))
	}
	if err != nil {
		return none(err)
	}
	now := v.clock()
	if err := v.check(s, now); err != nil {
		return none(err)
	}
	c, token, releaseToken, err := v.tokens.AdmitDigest(ctx, [sha256.Size]byte(s.TokenHash))
	if fault.Is(err, fault.Unauthenticated) {
		return none(ended("its token is valid no more"))
	}
	if err != nil {
		return none(err)
	}
	if now.Sub(s.LastUsedAt) >= touchEvery {
		err := v.touch(ctx, s.ID, now)
		if fault.Is(err, fault.NotFound) {
			releaseToken()
			return none(ended("it was signed out"))
		}
		if err != nil { // it is used all the same
			v.log.WarnContext(ctx, "the last use of a session was not written", "session", s.ID, "error", err)
		}
	}
	c.Session = s.ID
	if c.ExpiresAt.IsZero() || s.ExpiresAt.Before(c.ExpiresAt) {
		c.ExpiresAt = s.ExpiresAt
	}
	valid, end := context.WithCancelCause(context.Background())
	a := &admission{end: end}
	v.hold(s.ID, a)
	stopToken := context.AfterFunc(token, func() { end(ended("its token is valid no more")) })
	over := time.AfterFunc(s.ExpiresAt.Sub(now), func() { end(v.expired(s)) })
	release = sync.OnceFunc(func() {
		over.Stop()
		stopToken()
		v.drop(s.ID, a)
		end(nil)
		releaseToken()
		if took := v.now().Sub(now); took >= touchEvery { // what was open long was a use till now
			if err := v.touch(context.WithoutCancel(ctx), s.ID, v.clock()); err != nil && !fault.Is(err, fault.NotFound) {
				v.log.Warn("the last use of a session was not written", "session", s.ID, "error", err)
			}
		}
	})
	if v.endCount() == ends { // nothing has ended since it was read
		return c, valid, release, nil
	}
	if _, err := v.byHash(ctx, secret); err != nil {
		release()
		if fault.Is(err, fault.NotFound) {
			err = ended("it was signed out")
		}
		return none(err)
	}
	return c, valid, release, nil
}

// check returns the error of a session that is over.
func (v *Service) check(s *access.Session, now time.Time) error {
	if !now.Before(s.ExpiresAt) {
		return v.expired(s)
	}
	if now.Sub(s.LastUsedAt) > v.idle && !v.held(s.ID) {
		return ended("it was not used for " + v.idle.String())
	}
	return nil
}

func (v *Service) expired(s *access.Session) error {
	return ended("it was good until " + s.ExpiresAt.Format(time.RFC3339))
}

func (v *Service) touch(ctx context.Context, id string, now time.Time) error {
	return v.store.Update(ctx, func(tx store.Tx) error { return tx.Sessions().Touch(id, now) })
}

func (v *Service) hold(id string, a *admission) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open[id] == nil {
		v.open[id] = make(map[*admission]struct{})
	}
	v.open[id][a] = struct{}{}
}

func (v *Service) drop(id string, a *admission) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open[id], a)
	if len(v.open[id]) == 0 {
		delete(v.open, id)
	}
}

func (v *Service) held(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open[id]) > 0
}

func (v *Service) heldAll() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.open))
}

// endCount returns how many sessions were ended so far.
func (v *Service) endCount() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ends
}

// end ends what is open by a session whose record is gone.
func (v *Service) end(id string, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ends++
	for a := range v.open[id] {
		a.end(why)
	}
}

// List returns the sessions that a caller may see, oldest first: those of its own token, with the scope admin those of its
// project, with server:admin all. Those that are over are left out.
func (v *Service) List(ctx context.Context, c access.Caller) ([]*access.Session, error) {
	if c.Sandbox != "" {
		return nil, fault.New(fault.Denied, "a token of one sandbox has no sessions")
	}
	var all []*access.Session
	err := v.store.View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Sessions().List(scope(c))
		return err
	})
	if err != nil {
		return nil, err
	}
	now, out := v.clock(), all[:0]
	for _, s := range all {
		if !sees(c, s) || v.check(s, now) != nil {
			continue
		}
		_, release, err := v.owner(ctx, s)
		if fault.Is(err, fault.Unauthenticated) {
			continue
		}
		if err != nil {
			return nil, err
		}
		release()
		out = append(out, s)
	}
	return out, nil
}

// scope returns the project whose sessions a caller may see; empty: all.
func scope(c access.Caller) string {
	if c.May(access.ServerAdmin) {
		return ""
	}
	return c.Project
}

// sees reports whether a caller may see a session.
func sees(c access.Caller, s *access.Session) bool {
	if c.May(access.ServerAdmin) {
		return true
	}
	return s.Project == c.Project && (c.May(access.Admin) || s.TokenID == c.TokenID)
}

// End deletes a session that the caller may see. When it returns, requests with its cookie are refused, and the contexts of
// those under way have ended. A session that does not exist is fault.NotFound.
func (v *Service) End(ctx context.Context, c access.Caller, id string) error {
	all, err := v.List(ctx, c)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.ID == id {
			return v.delete(ctx, id)
		}
	}
	return fault.New(fault.NotFound, "there is no session with the id %q", sandbox.Clip(id, 40)).WithRemedy("list the sessions to see which there are")
}

// SignOut ends the session that a caller is signed in by.
func (v *Service) SignOut(ctx context.Context, c access.Caller) error {
	if c.Sandbox != "" {
		return fault.New(fault.Denied, "a token of one sandbox has no sessions")
	}
	if c.Session == "" {
		return fault.New(fault.State, "the request has a token, and no session to end").WithRemedy("end one by its id: sandpit session rm ID")
	}
	err := v.delete(ctx, c.Session)
	if fault.Is(err, fault.NotFound) {
		return nil // another request has
	}
	return err
}

func (v *Service) delete(ctx context.Context, id string) error {
	err := v.store.Update(ctx, func(tx store.Tx) error { return tx.Sessions().Delete(id) })
	// Also after an error: a commit whose answer was lost may have happened.
	v.end(id, ended("it was signed out"))
	return err
}
