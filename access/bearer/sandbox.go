// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Sandboxes is where the authority finds what makes tokens of one sandbox valid.
type Sandboxes interface {
	// TokenRound returns a sandbox's project, and how often its tokens were ended. A sandbox that there is
	// not is fault.NotFound. It is called for each request with such a token.
	TokenRound(ctx context.Context, id sandbox.ID) (project string, round int64, err error)
	// Successor returns the sandbox that took the place of one that is gone; fault.NotFound: none did. It is called
	// for tokens of sandboxes that there are not.
	Successor(ctx context.Context, id sandbox.ID) (sandbox.ID, error)
}

// roundsOfGone is how many rounds of a sandbox that is gone its tokens are looked for in: its record went with it.
const roundsOfGone = 64

// The form of a token of one sandbox: the prefix, a body and its signature, both in base64. The body has a version,
// the sandbox's id, the scopes as bits, the second in which it expires or zero, and the name.
const (
	sandboxPrefix  = "sps_"
	sandboxVersion = 1
	sandboxIDAt    = 1
	sandboxIDLen   = 16
	scopesAt       = sandboxIDAt + sandboxIDLen
	expiryAt       = scopesAt + 1
	nameAt         = expiryAt + 8
)

// SandboxKeySize is the length in bytes of the key that tokens of sandboxes are signed with.
const SandboxKeySize = 32

// ServeSandboxes has the authority make and take tokens of single sandboxes, signed with what it derives from key.
// It is called once, before the first check.
func (a *Authority) ServeSandboxes(key []byte, of Sandboxes) error {
	if len(key) != SandboxKeySize {
		return fault.New(fault.Invalid, "the key of sandboxes' tokens has %d bytes, not %d", len(key), SandboxKeySize)
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte("sandpit sandbox tokens 1")) // a hash takes everything
	a.sandboxKey, a.sandboxes = h.Sum(nil), of
	return nil
}

// SignSandbox returns the text of a token that is valid in a round of its sandbox.
func (a *Authority) SignSandbox(t access.SandboxToken, round int64) Secret {
	body := make([]byte, nameAt, nameAt+len(t.Name))
	body[0] = sandboxVersion
	copy(body[sandboxIDAt:], t.Sandbox)
	for i, s := range access.SandboxScopes() {
		for _, has := range t.Scopes {
			if has == s {
				body[scopesAt] |= 1 << i
			}
		}
	}
	if !t.ExpiresAt.IsZero() {
		binary.BigEndian.PutUint64(body[expiryAt:], uint64(t.ExpiresAt.Unix()))
	}
	body = append(body, t.Name...)
	return Secret{sandboxPrefix + base64.RawURLEncoding.EncodeToString(body) + "." + base64.RawURLEncoding.EncodeToString(a.signSandbox(body, round))}
}

func (a *Authority) signSandbox(body []byte, round int64) []byte {
	h := hmac.New(sha256.New, a.sandboxKey)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(round))
	_, _ = h.Write(n[:])
	_, _ = h.Write(body)
	return h.Sum(nil)
}

// readSandbox reads the parts of a token, and no more: who has signed it is not known.
func readSandbox(text string) (t access.SandboxToken, body, sum []byte, ok bool) {
	first, last, _ := strings.Cut(strings.TrimPrefix(text, sandboxPrefix), ".")
	code := base64.RawURLEncoding.Strict()
	body, err := code.DecodeString(first)
	if err != nil || len(body) < nameAt || body[0] != sandboxVersion {
		return t, nil, nil, false
	}
	if sum, err = code.DecodeString(last); err != nil || len(sum) != sha256.Size {
		return t, nil, nil, false
	}
	id := string(body[sandboxIDAt:scopesAt])
	if !sandbox.ValidID(id) {
		return t, nil, nil, false
	}
	t = access.SandboxToken{Sandbox: sandbox.ID(id), Name: string(body[nameAt:])}
	for i, s := range access.SandboxScopes() {
		if body[scopesAt]&(1<<i) != 0 {
			t.Scopes = append(t.Scopes, s)
		}
	}
	if at := binary.BigEndian.Uint64(body[expiryAt:]); at != 0 {
		t.ExpiresAt = time.Unix(int64(at), 0).UTC()
	}
	return t, body, sum, true
}

// checkSandbox is check for a token of one sandbox. Whether it is valid is asked anew each time: an end of all of
// them needs to be told to nobody.
func (a *Authority) checkSandbox(ctx context.Context, text string, digest digest) (access.Caller, *held, error) {
	none := func(err error) (access.Caller, *held, error) { return access.Caller{}, nil, err }
	t, body, sum, ok := readSandbox(text)
	if !ok || a.sandboxes == nil {
		return none(refuse("the bearer token is not valid"))
	}
	project, round, err := a.sandboxes.TokenRound(ctx, t.Sandbox)
	switch {
	case fault.Is(err, fault.NotFound):
		return none(a.ofGone(ctx, t.Sandbox, body, sum))
	case err != nil:
		return none(err)
	}
	if !hmac.Equal(sum, a.signSandbox(body, round)) {
		return none(refuse("the bearer token is not valid, or no more: a sandbox's tokens end together"))
	}
	h := &held{Token: &access.Token{ID: string(t.Sandbox), Project: project, Name: t.Name, Scopes: t.Scopes, ExpiresAt: t.ExpiresAt}}
	if err := h.check(a.now()); err != nil {
		return none(err)
	}
	return access.Caller{
		Project: project, Sandbox: t.Sandbox, Actor: t.Actor(), TokenID: sandboxPrefix + hex.EncodeToString(digest[:8]), Scopes: t.Scopes, ExpiresAt: t.ExpiresAt,
	}, h, nil
}

// ofGone refuses a token of a sandbox that there is not. Who has a token that this server has signed is told which sandbox took
// the place of its own; it is valid for none.
func (a *Authority) ofGone(ctx context.Context, id sandbox.ID, body, sum []byte) error {
	for round := range int64(roundsOfGone) {
		if !hmac.Equal(sum, a.signSandbox(body, round)) {
			continue
		}
		if by, err := a.sandboxes.Successor(ctx, id); err == nil {
			return fault.New(fault.Unauthenticated, "the bearer token ended with its sandbox %s, which was promoted away: %s has its place", id, by).
				WithRemedy("ask for a token of %s", by).WithReason(sandbox.ReasonPromoted)
		}
	}
	return refuse("the bearer token is not valid")
}

// EndSandbox ends what requests hold by the tokens of a sandbox. It is called when they are valid no more: after
// their round has passed, or the sandbox was deleted.
func (a *Authority) EndSandbox(id sandbox.ID) {
	a.validities.end(string(id), refuse("the tokens of the sandbox were ended"))
}
