// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"sandpit.dev/engine/events"
	"sandpit.dev/internal/seal"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Options of a [Service].
type Options struct {
	Ring     *seal.Ring                 // required
	Body     func(*events.Event) []byte // what is sent of an event; required
	Formats  map[string]Format          // beside the server's own, by their names
	Allow    []netip.Prefix             // ranges beyond the public internet that webhooks may reach
	Block    []netip.Prefix             // ranges that none reaches
	Version  string                     // of the server
	Resolver *net.Resolver              // nil: the host's
	TLS      *tls.Config                // nil: certificates are verified by the host's roots
	Now      func() time.Time           // nil: time.Now
	// Backoff is how long a webhook waits after so many failures in a row; nil: from 5 seconds to 2 hours.
	Backoff func(failures int) time.Duration
	// Answer bounds one attempt, and after Quick one counts as slow; zero: 10 and 2 seconds.
	Answer, Quick time.Duration
	Logger        *slog.Logger // nil: none
}

// Service keeps webhooks, and sends events to them. It is safe for concurrent use.
type Service struct {
	store   store.Store
	log     *events.Log
	ring    *seal.Ring
	body    func(*events.Event) []byte
	formats map[string]Format
	version string
	dial    *dialer
	http    *http.Client
	now     func() time.Time
	backoff func(int) time.Duration
	answer  time.Duration
	quick   time.Duration
	logger  *slog.Logger
	wake    chan struct{} // holds one token while there is something to do

	mu      sync.Mutex
	flights map[string]*flight   // what is being sent, by webhook
	waits   map[string]time.Time // until when one waits whose last attempt failed
	turn    uint64               // attempts that were begun
	turns   map[string]uint64    // that of the last one of a webhook, and of a project
	slow    map[string]string    // webhooks whose attempts are made in the slow lane, with their projects
	hooks   map[string]*hook     // all, by their ids
	stale   bool                 // they may be others
	loads   int                  // how often they were read
}

// New returns a service of a log of events. It starts nothing.
func New(s store.Store, log *events.Log, o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Backoff == nil {
		o.Backoff = backoff
	}
	d := &dialer{
		policy: policy.New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, policy.Operator{Block: o.Block}), allow: o.Allow, addresses: net.InterfaceAddrs,
	}
	return &Service{
		store: s, log: log, ring: o.Ring, body: o.Body, formats: o.Formats, version: o.Version, dial: d, http: d.client(o.Resolver, o.TLS), backoff: o.Backoff,
		answer: cmp.Or(o.Answer, answerBound), quick: cmp.Or(o.Quick, quickBound), logger: o.Logger,
		now:  func() time.Time { return o.Now().UTC().Truncate(time.Microsecond) },
		wake: make(chan struct{}, 1), flights: make(map[string]*flight), waits: make(map[string]time.Time), turns: make(map[string]uint64),
		slow: make(map[string]string), stale: true,
	}
}

const (
	mostPending = 10_000
	keepPast    = 500            // deliveries of a webhook that are over
	pruneEach   = 32             // attempts, on average, between two looks at how many there are
	patience    = 24 * time.Hour // for how long one is tried
	mostFailed  = 20             // attempts in a row
	page        = 256            // events of one transaction
	retry       = time.Second    // where the store does not answer
	longest     = time.Hour      // between two looks
)

// backoff is 5 seconds, and twice as long each time, up to 2 hours: 20 failures in a row are most of a day.
func backoff(failures int) time.Duration {
	return min(5*time.Second<<min(max(failures-1, 0), 20), 2*time.Hour)
}

func (s *Service) changed() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run makes deliveries of events and sends them, until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer s.http.CloseIdleConnections()
	defer running.Wait()
	if err := s.reseal(ctx); err != nil && ctx.Err() == nil {
		s.logger.Warn("secrets of webhooks cannot be sealed with the newest key; the next start tries again", "error", err)
	}
	for {
		committed := s.log.Committed()
		next, any, err := s.round(ctx, &running)
		if err != nil && ctx.Err() == nil {
			s.logger.Warn("webhooks cannot be looked after; it is tried again", "error", err)
			next = retry
		}
		if !any && err == nil {
			committed = nil // nobody wants them
		}
		t := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-committed:
		case <-t.C:
		}
		t.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// reseal seals secrets with the key that seals now, so that older ones may go.
func (s *Service) reseal(ctx context.Context) error {
	var stale bool
	if err := s.store.View(ctx, func(tx store.Tx) error {
		all, err := tx.Webhooks().List("")
		for _, w := range all {
			stale = stale || !s.ring.Current(w.Secret) || len(w.OldSecret) > 0 && !s.ring.Current(w.OldSecret)
		}
		return err
	}); err != nil || !stale {
		return err
	}
	return s.store.Update(ctx, func(tx store.Tx) error {
		all, err := tx.Webhooks().List("")
		for _, w := range all {
			for _, sealed := range []*[]byte{&w.Secret, &w.OldSecret} {
				if b, err := s.ring.Open(*sealed, "webhook", w.ID); err == nil {
					*sealed = s.seal(w.ID, string(b))
				}
			}
			if err := tx.Webhooks().Update(w); err != nil {
				return err
			}
		}
		return err
	})
}
