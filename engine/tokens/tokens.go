// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package tokens has the verbs about tokens that are good for one sandbox: it makes them, and ends all that a sandbox
// has. Nothing of a token is kept but the event that tells of it: it is signed together with the sandbox's round, a
// number in its record, and is valid until that is another. The package stands above the engine, whose visits of a
// sandbox it begins. It knows no coat and no signature.
package tokens

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// MaxExpiry is the longest time that a token can be asked for to be valid. One that is asked for without any is valid
// for as long as its sandbox exists, which no token outlives.
const MaxExpiry = sandbox.MaxClock

// useCall counts as activity, in a word for people.
const useCall = "a call by its name"

// Signer makes the text of a token for a round of its sandbox, and ends what requests hold by those of earlier rounds.
type Signer[Secret any] interface {
	SignSandbox(t access.SandboxToken, round int64) Secret
	EndSandbox(id sandbox.ID)
}

// Service is the verbs. All its methods are safe for concurrent use.
type Service[Secret any] struct {
	engine *engine.Engine
	signer Signer[Secret]
}

// New returns the verbs above an engine.
func New[Secret any](e *engine.Engine, s Signer[Secret]) *Service[Secret] {
	return &Service[Secret]{e, s}
}

// Request is what a caller asks of a token.
type Request struct {
	Name    string        // empty: access.DefaultSandboxToken
	Scopes  []string      // of read, write and ports, which write has; none: read and write
	Expires time.Duration // at most MaxExpiry, from a second on; zero: when the sandbox is deleted
}

// Check returns the token that a request asks for, of a sandbox that is not known yet. fault.Invalid names the field.
func (r Request) Check(now time.Time) (access.SandboxToken, error) {
	t := access.SandboxToken{Name: r.Name}
	if t.Name == "" {
		t.Name = access.DefaultSandboxToken
	}
	if err := access.CheckTokenName("name", t.Name); err != nil {
		return t, err
	}
	var err error
	if t.Scopes, err = access.CheckSandboxScopes("scopes", r.Scopes); err != nil {
		return t, err
	}
	if r.Expires != 0 {
		if r.Expires < time.Second || r.Expires > MaxExpiry {
			return t, fault.InvalidField("expires_in_seconds", "%v is outside 1 to %v seconds", r.Expires.Seconds(), MaxExpiry.Seconds())
		}
		t.ExpiresAt = now.Add(r.Expires + time.Second - 1).UTC().Truncate(time.Second)
	}
	return t, nil
}

// Create makes a token for a sandbox and returns its text, which cannot be read again. The caller needs the scope
// sandboxes:write of the sandbox's project, and the scopes that it gives.
func (s *Service[Secret]) Create(ctx context.Context, c access.Caller, ref string, r Request) (t access.SandboxToken, secret Secret, err error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return t, secret, err
	}
	if t, err = r.Check(s.engine.Now()); err != nil {
		return t, secret, err
	}
	for _, scope := range t.Scopes {
		if err := c.Require(scope); err != nil {
			return t, secret, err
		}
	}
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return t, secret, err
	}
	defer v.Leave()
	if err := s.engine.Store().Room(); err != nil {
		return t, secret, err
	}
	v.Touch(useCall)
	ev, err := v.NewEvent(sandbox.EventToken)
	if err != nil {
		return t, secret, err
	}
	t.Sandbox = ev.Sandbox
	ev.Detail = fmt.Sprintf("token %s for %s", t.Name, words(t.Scopes))
	if !t.ExpiresAt.IsZero() {
		ev.Detail += " until " + t.ExpiresAt.Format(time.RFC3339)
	}
	_, round, err := s.engine.TokenRound(ctx, t.Sandbox)
	if err != nil {
		return t, secret, err
	}
	if err := v.Record(ctx, ev); err != nil {
		return t, secret, err
	}
	return t, s.signer.SignSandbox(t, round), nil
}

// Rotate ends all tokens of a sandbox. When it returns none is valid, and the streams, terminals and connections that
// they opened have been told to end. Tokens that are made from then on are valid.
func (s *Service[Secret]) Rotate(ctx context.Context, c access.Caller, ref string) error {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return err
	}
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer v.Leave()
	v.Touch(useCall)
	ev, err := v.NewEvent(sandbox.EventTokensEnded)
	if err != nil {
		return err
	}
	err = v.Change(ctx, func(s *sandbox.Sandbox) { s.TokenRound++ }, nil, ev)
	s.signer.EndSandbox(ev.Sandbox) // also after an error: a commit whose answer was lost may have happened
	return err
}

func words(scopes []access.Scope) string {
	short := make([]string, len(scopes))
	for i, s := range scopes {
		short[i] = access.ShortScope(s)
	}
	return strings.Join(short, ", ")
}
