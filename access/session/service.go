// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// How long sessions and codes are good, as shipped.
const (
	DefaultIdle = 12 * time.Hour     // without a request
	DefaultLife = 7 * 24 * time.Hour // at most
	MinIdle     = time.Minute
	MaxLife     = 90 * 24 * time.Hour
	CodeLife    = time.Minute
)

// touchEvery is how exact the last use of a session is on record.
const touchEvery = time.Minute

// maxAgent is how many bytes are kept of what a browser calls itself.
const maxAgent = 200

// MaxSessions is how many sessions one token has at most; the oldest goes for one more.
const MaxSessions = 100

// Tokens check the tokens that sessions are exchanged for.
type Tokens interface {
	Check(ctx context.Context, token string) (access.Caller, error)
	// AdmitDigest returns the caller of a token whose SHA-256 was kept, and a context that ends when it is valid no
	// more. One that is not valid is fault.Unauthenticated.
	AdmitDigest(ctx context.Context, sum [sha256.Size]byte) (c access.Caller, valid context.Context, release func(), err error)
}

// Options of a [Service]; zero fields take the value named behind them.
type Options struct {
	Idle   time.Duration    // without a request, until a session ends: DefaultIdle
	Life   time.Duration    // of a session at most: DefaultLife
	Now    func() time.Time // time.Now
	Logger *slog.Logger     // silent
}

// Service signs people in and out. It is safe for concurrent use.
type Service struct {
	store  store.Store
	tokens Tokens
	idle   time.Duration
	life   time.Duration
	now    func() time.Time
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]map[*admission]struct{} // by session: requests that it has let in
	ends int                                // counts the sessions that were ended
}

// admission is a request that a session has let in.
type admission struct{ end context.CancelCauseFunc }

// New returns a Service. It starts nothing.
func New(s store.Store, tokens Tokens, o Options) *Service {
	v := &Service{store: s, tokens: tokens, idle: o.Idle, life: o.Life, now: o.Now, log: o.Logger, open: make(map[string]map[*admission]struct{})}
	if v.idle <= 0 {
		v.idle = DefaultIdle
	}
	if v.life <= 0 {
		v.life = DefaultLife
	}
	if v.now == nil {
		v.now = time.Now
	}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	return v
}

// Visitor is what is known of a browser that signs in.
type Visitor struct {
	Address string // the peer of its connection
	Agent   string // what it calls itself
}

// clock returns the time as the store keeps it.
func (v *Service) clock() time.Time { return v.now().UTC().Truncate(time.Microsecond) }

// Begin exchanges a token for a session, and returns its secret, which cannot be read again. A token that is not valid is
// fault.Unauthenticated; one of a single sandbox, or of an external issuer, fault.Denied.
func (v *Service) Begin(ctx context.Context, token string, from Visitor) (access.Session, bearer.Secret, access.Caller, error) {
	return v.exchange(ctx, token, from, false)
}

// NewCode exchanges a token for a code: [Service.Redeem] takes it once, within [CodeLife].
func (v *Service) NewCode(ctx context.Context, token string, from Visitor) (access.Session, bearer.Secret, error) {
	s, secret, _, err := v.exchange(ctx, token, from, true)
	return s, secret, err
}

func (v *Service) exchange(ctx context.Context, token string, from Visitor, code bool) (access.Session, bearer.Secret, access.Caller, error) {
	none := func(err error) (access.Session, bearer.Secret, access.Caller, error) {
		return access.Session{}, bearer.Secret{}, access.Caller{}, err
	}
	c, err := v.tokens.Check(ctx, token)
	switch {
	case err != nil:
		return none(err)
	case c.Sandbox != "":
		return none(fault.New(fault.Denied, "a token of one sandbox signs nobody in").WithRemedy("use one of the project's; sandpit token create makes one"))
	case c.Issuer != "":
		return none(fault.New(fault.Denied, "a token of the issuer %s signs nobody in: whether it is revoked cannot be asked later", sandbox.Clip(c.Issuer, 100)).
			WithRemedy("use one of this server's; sandpit token create makes one"))
	}
	if err := v.store.Room(); err != nil {
		return none(err)
	}
	sum := sha256.Sum256([]byte(token))
	now := v.clock()
	s := access.Session{
		ID: string(sandbox.NewID()), Code: code, TokenHash: sum[:], TokenID: c.TokenID, Project: c.Project, Actor: c.Actor,
		Address: from.Address, Agent: sandbox.Clip(from.Agent, maxAgent), CreatedAt: now, LastUsedAt: now, ExpiresAt: now.Add(v.life),
	}
	if code {
		s.ExpiresAt = now.Add(CodeLife)
	}
	secret, err := v.insert(ctx, &s, "")
	if err != nil {
		return none(err)
	}
	return s, secret, c, nil
}

// insert makes a secret and puts a record with its hash in the place of a code's, if one is named.
func (v *Service) insert(ctx context.Context, s *access.Session, inPlaceOf string) (bearer.Secret, error) {
	secret := newSecret(s.Code)
	sum := sha256.Sum256([]byte(secret.Reveal()))
	s.Hash = sum[:]
	var gone []string
	err := v.store.Update(ctx, func(tx store.Tx) error {
		gone = nil
		all := tx.Sessions()
		for _, id := range v.heldAll() { // what is open is a use till now
			if err := all.Touch(id, s.CreatedAt); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		if err := all.Expire(s.CreatedAt, s.CreatedAt.Add(-v.idle)); err != nil {
			return err
		}
		if inPlaceOf != "" {
			if err := all.Delete(inPlaceOf); err != nil {
				return err // it was used meanwhile
			}
		}
		if !s.Code {
			own, err := all.List(s.Project)
			if err != nil {
				return err
			}
			gone = surplus(own, s.TokenID)
			for _, id := range gone {
				if err := all.Delete(id); err != nil {
					return err
				}
			}
		}
		return all.Insert(s)
	})
	if err != nil {
		return bearer.Secret{}, err
	}
	for _, id := range gone {
		v.end(id, ended("a newer session took its place"))
	}
	return secret, nil
}

// surplus returns the oldest sessions of a token, so that there is room for one more.
func surplus(all []*access.Session, token string) (out []string) {
	var own []string
	for _, s := range all {
		if s.TokenID == token {
			own = append(own, s.ID)
		}
	}
	if n := len(own) - MaxSessions + 1; n > 0 {
		out = own[:n]
	}
	return out
}

// Redeem exchanges a code for a session, as [Service.Begin] does a token. A code that is not valid, or was used, is
// fault.Unauthenticated.
func (v *Service) Redeem(ctx context.Context, code string, from Visitor) (access.Session, bearer.Secret, access.Caller, error) {
	none := func(err error) (access.Session, bearer.Secret, access.Caller, error) {
		return access.Session{}, bearer.Secret{}, access.Caller{}, err
	}
	refused := fault.New(fault.Unauthenticated, "the code is not valid: it is good once, and for %v", CodeLife).WithRemedy("run sandpit console again")
	was, err := v.byHash(ctx, code)
	if fault.Is(err, fault.NotFound) || err == nil && (!was.Code || !v.now().Before(was.ExpiresAt)) {
		return none(refused)
	}
	if err != nil {
		return none(err)
	}
	c, release, err := v.owner(ctx, was)
	if err != nil {
		return none(err)
	}
	defer release()
	if err := v.store.Room(); err != nil {
		return none(err)
	}
	now := v.clock()
	s := *was
	s.ID, s.Code, s.Address, s.Agent = string(sandbox.NewID()), false, from.Address, sandbox.Clip(from.Agent, maxAgent)
	s.CreatedAt, s.LastUsedAt, s.ExpiresAt = now, now, now.Add(v.life)
	secret, err := v.insert(ctx, &s, was.ID)
	if fault.Is(err, fault.NotFound) {
		return none(refused)
	}
	if err != nil {
		return none(err)
	}
	return s, secret, c, nil
}

func (v *Service) byHash(ctx context.Context, secret string) (s *access.Session, err error) {
	if !formed(secret) {
		return nil, fault.New(fault.NotFound, "there is no such session")
	}
	sum := sha256.Sum256([]byte(secret))
	err = v.store.View(ctx, func(tx store.Tx) (err error) {
		s, err = tx.Sessions().ByHash(sum[:])
		return err
	})
	return s, err
}

// owner returns whose token a session is bound to, if that is valid.
func (v *Service) owner(ctx context.Context, s *access.Session) (access.Caller, func(), error) {
	c, _, release, err := v.tokens.AdmitDigest(ctx, [sha256.Size]byte(s.TokenHash))
	return c, release, err
}

// The form of secrets: a prefix, by which scanners for leaked ones know them, and what is random of it.
const (
	sessionPrefix = "spc_"
	codePrefix    = "spo_"
	secretLen     = 52 // letters of rand.Text, twice: 256 bits and more
)

func newSecret(code bool) bearer.Secret {
	prefix := sessionPrefix
	if code {
		prefix = codePrefix
	}
	return bearer.NewSecret(prefix + rand.Text() + rand.Text())
}

func formed(secret string) bool {
	return len(secret) == len(sessionPrefix)+secretLen && (secret[:4] == sessionPrefix || secret[:4] == codePrefix)
}

func ended(why string) error {
	return fault.New(fault.Unauthenticated, "the session has ended: %s", why).WithRemedy("sign in again")
}
