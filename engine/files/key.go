// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"crypto/rand"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
)

// Key says which key addresses of a sandbox's files are signed by: it is made of these and of a key of the server's, elsewhere.
type Key struct {
	Project string
	Sandbox sandbox.ID
	Salt    string // another one is another key; empty: it was never exchanged
}

// Key returns which key a sandbox has. Whoever has it reads and writes all that the sandbox's user may, for as long as it is
// not exchanged: the caller needs the scope sandboxes:write of the project, and a token of one sandbox is refused.
func (s *Service) Key(ctx context.Context, c access.Caller, ref string) (Key, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Key{}, err
	}
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return Key{}, err
	}
	defer v.Leave()
	return s.KeyOf(ctx, v.Sandbox())
}

// KeyOf is Key for who checks a signature, and so asks before it is known whether anything may be done.
func (s *Service) KeyOf(ctx context.Context, id sandbox.ID) (Key, error) {
	r, err := s.engine.RecordOf(ctx, id)
	if err != nil {
		return Key{}, err
	}
	return Key{r.Project, r.ID, r.FileSalt}, nil
}

// ExchangeKey replaces the key of a sandbox and returns the new one. No address that was signed before is valid when it returns.
func (s *Service) ExchangeKey(ctx context.Context, c access.Caller, ref string) (Key, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Key{}, err
	}
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return Key{}, err
	}
	defer v.Leave()
	v.Touch(useFiles)
	ev, err := v.NewEvent(sandbox.EventFileKey)
	if err != nil {
		return Key{}, err
	}
	k := Key{ev.Project, ev.Sandbox, rand.Text()}
	ev.Detail = "addresses of files that were signed before are good no more"
	return k, v.Change(ctx, func(s *sandbox.Sandbox) { s.FileSalt = k.Salt }, nil, ev)
}
