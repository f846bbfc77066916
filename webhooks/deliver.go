// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"syscall"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// flight is an attempt that is being made.
type flight struct {
	project string
	cancel  context.CancelFunc
	slow    bool           // it is in the slow lane
	of      *store.Webhook // as it was read; nil: not yet
	stale   bool           // the webhook was changed meanwhile
	done    chan struct{}  // closed when it is over
}

// interrupt ends the attempt that is being made for a webhook, and waits for that, if what it is made of is no longer so: w is
// what the webhook is now, nil if it was deleted. An attempt that began after the change goes on.
func (s *Service) interrupt(ctx context.Context, id string, w *store.Webhook) {
	s.mu.Lock()
	delete(s.waits, id)
	f := s.flights[id]
	if f != nil && w != nil && f.of != nil && w.DisabledAt.IsZero() && f.of.URL == w.URL && bytes.Equal(f.of.Secret, w.Secret) && bytes.Equal(f.of.OldSecret, w.OldSecret) {
		f = nil
	}
	if f != nil {
		f.stale = true
		f.cancel()
	}
	s.mu.Unlock()
	if f != nil {
		select {
		case <-f.done:
		case <-ctx.Done():
		}
	}
}

// attempt sends the delivery of a webhook that is due, as both are on record now, and records what became of it.
func (s *Service) attempt(ctx context.Context, id string, f *flight) {
	var w *store.Webhook
	var d *store.Delivery
	err := s.store.View(ctx, func(tx store.Tx) (err error) {
		if w, err = tx.Webhooks().Get(id); err != nil || !w.DisabledAt.IsZero() {
			return err
		}
		d, err = tx.Webhooks().Due(id)
		return err
	})
	switch {
	case err != nil && !fault.Is(err, fault.NotFound) && ctx.Err() == nil:
		s.logger.Warn("a delivery cannot be read; it is tried again", "webhook", id, "error", err)
		s.wait(f, id, s.now().Add(retry))
		return
	case fault.Is(err, fault.NotFound), err == nil && !w.DisabledAt.IsZero():
		s.invalidate() // it was not known to be gone, or switched off
		return
	case err != nil || d == nil || d.NextAt.After(s.now()):
		return
	}
	s.mu.Lock()
	f.of = w
	s.mu.Unlock()
	began := time.Now()
	late := time.AfterFunc(s.quick, func() { s.late(id, f) })
	status, detail := s.send(ctx, w, d)
	late.Stop()
	took := time.Since(began)
	if ctx.Err() != nil && status == 0 {
		return // the server ends, or the webhook is another one now: it is tried again
	}
	if took < s.quick {
		s.mu.Lock()
		delete(s.slow, id)
		s.mu.Unlock()
	}
	at := s.now()
	d.Attempts, d.Status, d.Detail, d.Duration = d.Attempts+1, status, detail, took
	ok := detail == ""
	switch {
	case ok:
		d.State, d.DoneAt, d.NextAt = store.DeliveryDone, at, time.Time{}
	case at.Sub(d.CreatedAt) >= patience:
		d.State, d.DoneAt, d.NextAt = store.DeliveryFailed, at, time.Time{}
	default:
		d.NextAt = at.Add(s.backoff(d.Attempts))
	}
	failures := 0
	var changed *store.Webhook
	err = s.store.Update(context.WithoutCancel(ctx), func(tx store.Tx) error {
		changed = nil
		now, err := tx.Webhooks().Get(id)
		if fault.Is(err, fault.NotFound) {
			return nil // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		if !ok && (now.URL != w.URL || !bytes.Equal(now.Secret, w.Secret) || !now.DisabledAt.IsZero()) {
			return nil // what failed is no longer so
		}
		if err := tx.Webhooks().Finish(d); err != nil {
			return err
		}
		if rand.IntN(pruneEach) == 0 {
			if _, err := tx.Webhooks().Prune(id, keepPast, keepPast); err != nil {
				return err
			}
		}
		if ok && now.Failures == 0 {
			return nil
		}
		now.Failures, now.Detail = now.Failures+1, detail
		if ok {
			now.Failures = 0
		}
		failures = now.Failures
		if now.Failures >= mostFailed && now.DisabledAt.IsZero() {
			now.DisabledAt, now.DisabledBy = at, "system"
			s.logger.Warn("a webhook is switched off, for it failed too often in a row", "webhook", id, "project", w.Project, "failures", now.Failures, "last", detail)
		}
		changed = now
		return tx.Webhooks().Update(now)
	})
	if err == nil && changed != nil {
		s.note(id, changed)
	}
	if err != nil {
		s.logger.Warn("a delivery cannot be recorded; it is sent again", "webhook", id, "delivery", d.ID, "error", err)
		failures = max(failures, 1)
	}
	if failures > 0 {
		s.wait(f, id, at.Add(s.backoff(failures)))
	}
}

// wait has a webhook wait until a time, if it was not changed since the attempt began.
func (s *Service) wait(f *flight, id string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.stale {
		s.waits[id] = until
	}
}

// send makes one attempt. detail says why it failed, in words that tell nothing of the server's own network; "": it
// has not.
func (s *Service) send(ctx context.Context, w *store.Webhook, d *store.Delivery) (status int, detail string) {
	secrets, err := s.secrets(w)
	if err != nil {
		s.logger.Error("the secret of a webhook does not open", "webhook", w.ID, "error", err)
		return 0, "its secret does not open with the server's keys: rotate it"
	}
	ctx, cancel := context.WithTimeout(ctx, s.answer)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(d.Body))
	if err != nil {
		return 0, "its URL is none"
	}
	h := r.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "sandpit-webhooks/"+s.version)
	if err := s.sign(h, w, d, secrets); err != nil {
		return 0, fault.As(err).Message
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return 0, wordsOf(err, s.answer)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // for the next request; what it says is not kept
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return resp.StatusCode, ""
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return resp.StatusCode, fmt.Sprintf("it answered %d; redirects are not followed", resp.StatusCode)
	}
	return resp.StatusCode, fmt.Sprintf("it answered %d", resp.StatusCode)
}

// secrets returns what a delivery is signed with now.
func (s *Service) secrets(w *store.Webhook) (all []string, err error) {
	b, err := s.ring.Open(w.Secret, "webhook", w.ID)
	if err != nil {
		return nil, err
	}
	all = append(all, string(b))
	if len(w.OldSecret) > 0 && s.now().Before(w.OldUntil) {
		if b, err := s.ring.Open(w.OldSecret, "webhook", w.ID); err == nil {
			all = append(all, string(b))
		}
	}
	return all, nil
}

// wordsOf says why no answer came.
func wordsOf(err error, bound time.Duration) string {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var timeout net.Error
	switch {
	case fault.Is(err, fault.Denied):
		return "its host stands for an address that webhooks may not reach"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "its host is not known"
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return "its certificate does not verify"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it did not answer within %v", bound)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "it broke the connection off"
	}
	return "it cannot be reached"
}
