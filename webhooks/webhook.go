// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// What the verbs return.
type (
	Webhook  = store.Webhook
	Delivery = store.Delivery
)

// Delivered is the state of a delivery that was taken, for [Page].
const Delivered = store.DeliveryDone

// Bounds of webhooks.
const (
	MaxWebhooks    = 20 // of a project
	MaxURL         = 2048
	MaxDescription = 256
	MaxTypes       = 64
	DefaultGrace   = 24 * time.Hour // of a secret that was rotated
	MaxGrace       = 7 * 24 * time.Hour
	MaxPage        = 200
)

// Change is what a caller wants of a webhook. Nil fields stay.
type Change struct {
	URL         *string
	Types       *[]string
	Description *string
	Enabled     *bool
	Format      *string // of a new one: [Own], which is the default, or one of [Options]; it stays
}

// Create makes a webhook, and returns its secret, which is not shown again.
func (s *Service) Create(ctx context.Context, c access.Caller, ch Change) (w *store.Webhook, secret string, err error) {
	if err := c.Require(access.Admin); err != nil {
		return nil, "", err
	}
	if ch.URL == nil {
		return nil, "", fault.InvalidField("url", "is missing").WithRemedy("send the https URL that events are to be sent to")
	}
	at := s.now()
	w = &store.Webhook{ID: "wh_" + random(), Project: c.Project, CreatedAt: at, CreatedBy: c.Actor}
	secret = newSecret()
	w.Secret = s.seal(w.ID, secret)
	if ch.Format != nil {
		if err := s.setFormat(w, *ch.Format); err != nil {
			return nil, "", err
		}
	}
	if err := s.apply(w, ch, c, at); err != nil {
		return nil, "", err
	}
	err = s.store.Update(ctx, func(tx store.Tx) error {
		all, err := tx.Webhooks().List(c.Project)
		if err != nil {
			return err
		}
		if len(all) >= MaxWebhooks {
			return fault.New(fault.Exhausted, "the project has %d webhooks, the most that it may", len(all)).WithRemedy("delete one, or give one more types")
		}
		if _, w.Position, err = tx.Changes().Bounds(); err != nil {
			return err
		}
		return tx.Webhooks().Insert(w)
	})
	if err != nil {
		return nil, "", err
	}
	s.invalidate()
	return w, secret, nil
}

// apply makes the change of a record.
func (s *Service) apply(w *store.Webhook, ch Change, c access.Caller, at time.Time) error {
	if ch.URL != nil {
		if err := s.checkURL(*ch.URL); err != nil {
			return err
		}
		if *ch.URL != w.URL {
			w.Failures, w.Detail = 0, "" // of another place
		}
		w.URL = *ch.URL
	}
	if ch.Types != nil {
		if err := s.checkTypes(w, *ch.Types); err != nil {
			return err
		}
		w.Types = *ch.Types
	}
	if ch.Description != nil {
		if len(*ch.Description) > MaxDescription || strings.ContainsFunc(*ch.Description, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fault.InvalidField("description", "is %q; it has at most %d printable characters", sandbox.Clip(*ch.Description, 40), MaxDescription)
		}
		w.Description = *ch.Description
	}
	if ch.Enabled != nil {
		switch {
		case *ch.Enabled && !w.DisabledAt.IsZero():
			w.DisabledAt, w.DisabledBy, w.Detail, w.Failures = time.Time{}, "", "", 0
		case !*ch.Enabled && w.DisabledAt.IsZero():
			w.DisabledAt, w.DisabledBy = at, c.Actor
		}
	}
	w.UpdatedAt = at
	return nil
}

// checkURL checks a URL as far as it can be without looking its name up.
func (s *Service) checkURL(text string) error {
	bad := func(format string, args ...any) error {
		return fault.InvalidField("url", format, args...).WithRemedy("send an https URL of a host on the internet, such as https://hooks.example.org/sandpit")
	}
	if len(text) > MaxURL {
		return bad("has %d bytes, more than %d", len(text), MaxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return bad("is %q, which is no URL", sandbox.Clip(text, 80))
	case u.Scheme != "https" && u.Scheme != "http":
		return bad("is %q: its scheme is not https", sandbox.Clip(text, 80))
	case u.Opaque != "" || u.Hostname() == "":
		return bad("is %q, which has no host", sandbox.Clip(text, 80))
	case u.User != nil:
		return bad("has a user or a password, which would be shown to who lists webhooks")
	case u.Port() != "" && !port(u.Port()):
		return bad("is %q: %s is no port", sandbox.Clip(text, 80), sandbox.Clip(u.Port(), 20))
	case u.Fragment != "":
		return bad("has a fragment, which no server is sent")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	a, err := netip.ParseAddr(host)
	if err == nil {
		if err := s.dial.check(a); err != nil {
			return bad("is %q: %s", sandbox.Clip(text, 80), fault.As(err).Message)
		}
	}
	if u.Scheme == "http" && (err != nil || !s.dial.named(a)) {
		return bad("is %q: without https what is sent could be read on its way", sandbox.Clip(text, 80))
	}
	if err != nil && (host == "localhost" || strings.HasSuffix(host, ".localhost")) && !s.dial.named(netip.IPv6Loopback()) && !s.dial.named(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		return bad("is %q, which is this server itself", sandbox.Clip(text, 80))
	}
	return nil
}

func port(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// List returns the project's webhooks, oldest first.
func (s *Service) List(ctx context.Context, c access.Caller) (all []*store.Webhook, err error) {
	if err := c.Require(access.Admin); err != nil {
		return nil, err
	}
	err = s.store.View(ctx, func(tx store.Tx) error { all, err = tx.Webhooks().List(c.Project); return err })
	return all, err
}

// Get returns a webhook of the project.
func (s *Service) Get(ctx context.Context, c access.Caller, id string) (w *store.Webhook, err error) {
	if err := c.Require(access.Admin); err != nil {
		return nil, err
	}
	err = s.store.View(ctx, func(tx store.Tx) error { w, err = own(tx, c, id); return err })
	return w, err
}

func own(tx store.Tx, c access.Caller, id string) (*store.Webhook, error) {
	w, err := tx.Webhooks().Get(id)
	if err == nil && w.Project != c.Project {
		return nil, fault.New(fault.NotFound, "there is no webhook %q", sandbox.Clip(id, 40))
	}
	return w, err
}

// change changes a webhook of the project.
func (s *Service) change(ctx context.Context, c access.Caller, id string, do func(tx store.Tx, w *store.Webhook) error) (w *store.Webhook, err error) {
	if err := c.Require(access.Admin); err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx store.Tx) error {
		if w, err = own(tx, c, id); err != nil {
			return err
		}
		w.Position = max(w.Position, s.seen(id)) // as what it was
		if err := do(tx, w); err != nil {
			return err
		}
		return tx.Webhooks().Update(w)
	})
	if err != nil {
		return nil, err
	}
	s.invalidate()
	return w, nil
}

// Update changes a webhook. One that is switched on again is sent what happens from then on, and what was pending. When it
// returns, nothing is sent any more to what the webhook was.
func (s *Service) Update(ctx context.Context, c access.Caller, id string, ch Change) (*store.Webhook, error) {
	var another bool
	w, err := s.change(ctx, c, id, func(tx store.Tx, w *store.Webhook) (err error) {
		off, url := !w.DisabledAt.IsZero(), w.URL
		if err := s.apply(w, ch, c, s.now()); err != nil {
			return err
		}
		on := w.DisabledAt.IsZero()
		another = off == on || url != w.URL
		if off && on {
			if _, w.Position, err = tx.Changes().Bounds(); err != nil {
				return err
			}
		}
		if !another || !on {
			return nil
		}
		d, err := tx.Webhooks().Due(id)
		if err != nil || d == nil {
			return err
		}
		d.NextAt = s.now() // it waits for what was there before
		return tx.Webhooks().Finish(d)
	})
	if err == nil && another {
		s.interrupt(ctx, id, w)
		s.invalidate()
	}
	return w, err
}

// Rotate gives a webhook another secret. What is sent within grace is signed by both.
func (s *Service) Rotate(ctx context.Context, c access.Caller, id string, grace time.Duration) (*store.Webhook, string, error) {
	if grace < 0 || grace > MaxGrace {
		return nil, "", fault.InvalidField("grace_seconds", "%d is outside 0 to %d", int64(grace/time.Second), int64(MaxGrace/time.Second))
	}
	secret := newSecret()
	w, err := s.change(ctx, c, id, func(_ store.Tx, w *store.Webhook) error {
		at := s.now()
		w.OldSecret, w.OldUntil = w.Secret, at.Add(grace)
		if grace == 0 {
			w.OldSecret, w.OldUntil = nil, time.Time{}
		}
		w.Secret, w.UpdatedAt = s.seal(w.ID, secret), at
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	s.interrupt(ctx, id, w)
	s.invalidate()
	return w, secret, nil
}

// Delete deletes a webhook with its deliveries. When it returns, nothing is sent to it any more.
func (s *Service) Delete(ctx context.Context, c access.Caller, id string) error {
	if err := c.Require(access.Admin); err != nil {
		return err
	}
	err := s.store.Update(ctx, func(tx store.Tx) error {
		if _, err := own(tx, c, id); err != nil {
			return err
		}
		return tx.Webhooks().Delete(id)
	})
	if err == nil {
		s.interrupt(ctx, id, nil)
		s.invalidate()
	}
	return err
}

// Page selects deliveries.
type Page struct {
	Before int64  // a delivery's Number; 0: from the newest on
	State  string // "": all
	Limit  int
}

// Deliveries returns deliveries of a webhook without their bodies, newest first.
func (s *Service) Deliveries(ctx context.Context, c access.Caller, id string, p Page) (all []*store.Delivery, err error) {
	if err := c.Require(access.Admin); err != nil {
		return nil, err
	}
	if p.Limit < 1 || p.Limit > MaxPage {
		return nil, fault.InvalidField("limit", "%d is outside 1 to %d", p.Limit, MaxPage)
	}
	switch p.State {
	case "", store.DeliveryPending, store.DeliveryDone, store.DeliveryFailed:
	default:
		return nil, fault.InvalidField("status", "%q is none of pending, delivered and failed", sandbox.Clip(p.State, 40))
	}
	err = s.store.View(ctx, func(tx store.Tx) error {
		if _, err := own(tx, c, id); err != nil {
			return err
		}
		all, err = tx.Webhooks().Deliveries(id, p.Before, p.State, p.Limit)
		return err
	})
	return all, err
}

// Repeat sends what a delivery sent once more, as a delivery of its own.
func (s *Service) Repeat(ctx context.Context, c access.Caller, id, delivery string) (d *store.Delivery, err error) {
	_, err = s.change(ctx, c, id, func(tx store.Tx, w *store.Webhook) error {
		old, err := tx.Webhooks().Delivery(id, delivery)
		if err != nil {
			return err
		}
		if !w.DisabledAt.IsZero() {
			return fault.New(fault.State, "the webhook %s is switched off", id).WithRemedy("switch it on first: PATCH /v1/webhooks/%s with enabled true, or sandpit webhook enable %s", id, id)
		}
		at := s.now()
		d = &store.Delivery{
			ID: "del_" + random(), Webhook: id, EventID: old.EventID, Type: old.Type, Body: old.Body, Repeats: old.ID,
			State: store.DeliveryPending, NextAt: at, CreatedAt: at,
		}
		return tx.Webhooks().Add(d)
	})
	return d, err
}

func random() string { return strings.ToLower(rand.Text()) }

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return "whsec_" + hex.EncodeToString(b[:])
}

func (s *Service) seal(id, secret string) []byte {
	return s.ring.Seal([]byte(secret), "webhook", id)
}
