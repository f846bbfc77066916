// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Bounds of links that are on record.
const (
	MaxLink  = sandbox.MaxClock // how long one can be asked for to be good
	MaxLinks = 100              // of one sandbox, that have not expired
)

// Link is a link to a port that is on record, and that can be listed and revoked. What proves it is made elsewhere, of
// its id.
type Link = store.PreviewLink

// CreateLink makes a link to a port. It is good until it expires, is revoked, or its sandbox is deleted; zero expires
// is the last alone. Nothing needs to listen there yet, nor the sandbox to run.
func (s *Service) CreateLink(ctx context.Context, c access.Caller, ref string, port int, expires time.Duration) (*Link, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	var k check.Fields
	k.Port("port", port)
	if expires != 0 && (expires < MinPreview || expires > MaxLink) {
		k.Bad("expires_seconds", "%v is outside %v to %v seconds", expires.Seconds(), MinPreview.Seconds(), MaxLink.Seconds())
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return nil, err
	}
	defer v.Leave()
	if err := s.engine.Store().Room(); err != nil {
		return nil, err
	}
	v.Touch(useCall)
	ev, err := v.NewEvent(sandbox.EventPreview)
	if err != nil {
		return nil, err
	}
	l := &Link{ID: sandbox.NewProcessID(), Sandbox: ev.Sandbox, Project: ev.Project, Port: port, CreatedAt: ev.At.UTC().Truncate(time.Microsecond), CreatedBy: ev.Actor}
	ev.ProcessID = l.ID
	ev.Detail = fmt.Sprintf("link %s to port %d", l.ID, port)
	if expires != 0 {
		l.ExpiresAt = ev.At.Add(expires + time.Second - 1).UTC().Truncate(time.Second)
		ev.Detail += " until " + l.ExpiresAt.Format(time.RFC3339)
	}
	err = v.Change(ctx, func(*sandbox.Sandbox) {}, func(tx store.Tx) error {
		if _, err := tx.Sandboxes().Get(l.Sandbox); err != nil { // it is deleted
			return err
		}
		if err := tx.PreviewLinks().Expire(l.Sandbox, ev.At); err != nil {
			return err
		}
		all, err := tx.PreviewLinks().List(l.Sandbox)
		if err != nil {
			return err
		}
		if len(all) >= MaxLinks {
			return fault.New(fault.Exhausted, "the sandbox %s has %d links to its ports, its bound", ref, len(all)).
				WithRemedy("revoke some, or make links that expire")
		}
		return tx.PreviewLinks().Insert(l)
	}, ev)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Links returns the links of a sandbox, the oldest first, those that have expired left out.
func (s *Service) Links(ctx context.Context, c access.Caller, ref string) (all []*Link, err error) {
	if err := c.Require(access.SandboxesWrite); err != nil { // whoever sees a link can use it
		return nil, err
	}
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return nil, err
	}
	defer v.Leave()
	err = s.engine.Store().View(ctx, func(tx store.Tx) error {
		list, err := tx.PreviewLinks().List(v.Sandbox())
		all = nil
		for _, l := range list {
			if !expired(l, s.engine.Now()) {
				all = append(all, l)
			}
		}
		return err
	})
	return all, err
}

func expired(l *Link, now time.Time) bool { return !l.ExpiresAt.IsZero() && !now.Before(l.ExpiresAt) }

// RevokeLink ends a link. When it returns nothing is served by it any more, and what was open has been told to end.
func (s *Service) RevokeLink(ctx context.Context, c access.Caller, ref, id string) error {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return err
	}
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer v.Leave()
	v.Touch(useCall)
	ev, err := v.NewEvent(sandbox.EventPreviewRevoked)
	if err != nil {
		return err
	}
	ev.ProcessID, ev.Detail = id, "link "+sandbox.Clip(id, 40)
	err = v.Change(ctx, func(*sandbox.Sandbox) {}, func(tx store.Tx) error { return tx.PreviewLinks().Delete(ev.Sandbox, id) }, ev)
	if !fault.Is(err, fault.NotFound) {
		s.links.end(id) // also after an error: a commit whose answer was lost may have happened
	}
	return err
}

// AdmitLink returns a link that is good, and a context that ends when it is revoked. The caller calls release once. One
// that is not there, or has expired, is fault.Unauthenticated.
func (s *Service) AdmitLink(ctx context.Context, id string) (_ *Link, valid context.Context, release func(), err error) {
	// Held before it is looked for, so that no revocation comes between.
	valid, release = s.links.hold(id)
	var l *Link
	err = s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		l, err = tx.PreviewLinks().Get(id)
		return err
	})
	if fault.Is(err, fault.NotFound) || err == nil && expired(l, s.engine.Now()) {
		err = fault.New(fault.Unauthenticated, "the link is not valid, or no more").WithRemedy("ask whoever gave you the link for a new one")
	}
	if err != nil {
		release()
		return nil, nil, nil, err
	}
	return l, valid, release, nil
}

// heldLinks are the contexts of what links have open.
type heldLinks struct {
	mu sync.Mutex
	of map[string]*heldLink
}

type heldLink struct {
	ctx   context.Context
	end   context.CancelFunc
	holds int
}

func (h *heldLinks) hold(id string) (context.Context, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.of[id]
	if l == nil {
		l = new(heldLink)
		l.ctx, l.end = context.WithCancel(context.Background())
		if h.of == nil {
			h.of = make(map[string]*heldLink)
		}
		h.of[id] = l
	}
	l.holds++
	return l.ctx, sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if l.holds--; l.holds == 0 {
			l.end()
			if h.of[id] == l {
				delete(h.of, id)
			}
		}
	})
}

func (h *heldLinks) end(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.of[id]; l != nil {
		l.end()
		delete(h.of, id)
	}
}

// endAll is end for all whose keys have a prefix.
func (h *heldLinks) endAll(prefix string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, l := range h.of {
		if strings.HasPrefix(id, prefix) {
			l.end()
			delete(h.of, id)
		}
	}
}
