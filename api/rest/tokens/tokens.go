// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/store/keyed"
)

// whoami needs no scope: it says nothing of what is in the project but what quotas leave.
func (a *API) whoami(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.Whoami, error) {
	out := v1.Whoami{
		Name: c.Caller.Actor, Project: c.Caller.Project, Scopes: scopesOf(c.Caller.Scopes),
		Profile: c.Caller.Profile, ExpiresAt: shape.TimeOrNull(c.Caller.ExpiresAt),
	}
	if c.Caller.TokenID != "" {
		out.TokenID = &c.Caller.TokenID
	}
	if c.Caller.Sandbox != "" {
		out.SandboxID = new(string(c.Caller.Sandbox))
		return out, nil // what the project has left is not for it to know
	}
	if a.Projects == nil {
		return out, nil
	}
	p, err := a.Projects.Limits(ctx, c.Caller)
	if err != nil {
		return v1.Whoami{}, err
	}
	if left := shape.Project(&p).Left; left != (v1.Amounts{}) {
		out.Left = &left
	}
	return out, nil
}

type listTokens struct {
	Project *string `query:"project" doc:"only those of this project; the default is all that the caller manages"`
}

func (a *API) listTokens(ctx context.Context, c *idempotency.Call, in *listTokens) (v1.TokenList, error) {
	tokens, err := a.Tokens.List(ctx, c.Caller, httpapi.Given(in.Project))
	if err != nil {
		return v1.TokenList{}, err
	}
	out := v1.TokenList{Items: make([]v1.Token, 0, len(tokens))}
	for _, t := range tokens {
		out.Items = append(out.Items, tokenOf(*t))
	}
	return out, nil
}

type createToken struct {
	Body v1.CreateToken
}

func (a *API) createToken(ctx context.Context, c *idempotency.Call, in *createToken) (v1.CreatedToken, error) {
	var sp httpapi.Spellings
	b := &in.Body
	n := bearer.NewToken{Name: b.Name, Project: httpapi.Given(b.Project), Profile: b.Profile}
	for _, s := range b.Scopes {
		n.Scopes = append(n.Scopes, access.Scope(s))
	}
	const most = 100 * 365 * 24 * 3600
	switch {
	case b.ExpiresAt != nil && b.ExpiresInSeconds != nil:
		sp.Add("expires_at", "and expires_in_seconds are both given; send one of them")
		sp.Add("expires_in_seconds", "and expires_at are both given; send one of them")
	case b.ExpiresAt != nil:
		n.ExpiresAt = *b.ExpiresAt
	case b.ExpiresInSeconds != nil:
		if *b.ExpiresInSeconds < 1 || *b.ExpiresInSeconds > most {
			sp.Add("expires_in_seconds", "%d is outside 1 to %d seconds", *b.ExpiresInSeconds, int64(most))
		}
		n.ExpiresAt = time.Now().Add(time.Duration(*b.ExpiresInSeconds) * time.Second)
	}
	if err := sp.Err(); err != nil {
		return v1.CreatedToken{}, err
	}
	old, made, err := idempotency.Again(c, keyed.Token, a.tokenBy(ctx, c), nil)
	if made || err != nil {
		return v1.CreatedToken{Token: tokenOf(old), SecretOmitted: true}, err
	}
	t, secret, err := a.Tokens.Create(ctx, c.Caller, n)
	if err != nil {
		return v1.CreatedToken{}, err
	}
	if err := c.KeepAs(v1.CreatedToken{Token: tokenOf(t), SecretOmitted: true}); err != nil {
		return v1.CreatedToken{}, err
	}
	return v1.CreatedToken{Token: tokenOf(t), Secret: secret.Reveal()}, nil
}

// tokenBy finds what a request has made; see [again].
func (a *API) tokenBy(ctx context.Context, c *idempotency.Call) func(string) (access.Token, error) {
	return func(id string) (access.Token, error) {
		all, err := a.Tokens.List(ctx, c.Caller, "")
		for _, t := range all {
			if t.ID == id {
				return *t, nil
			}
		}
		if err == nil {
			err = fault.New(fault.NotFound, "there is no token with the id %s", id)
		}
		return access.Token{}, err
	}
}

type byToken struct {
	ID      string  `path:"id" doc:"the token's id or name"`
	Project *string `query:"project" doc:"of this project; the default is all that the caller manages"`
}

func (a *API) deleteToken(ctx context.Context, c *idempotency.Call, in *byToken) (httpapi.None, error) {
	return httpapi.None{}, a.Tokens.Delete(ctx, c.Caller, httpapi.Given(in.Project), in.ID)
}

type rotateToken struct {
	byToken
	Body v1.RotateToken
}

func (a *API) rotateToken(ctx context.Context, c *idempotency.Call, in *rotateToken) (v1.RotatedToken, error) {
	grace := access.DefaultGrace
	if s := in.Body.GraceSeconds; s != nil {
		if *s < 0 || *s > int64(access.MaxGrace/time.Second) {
			return v1.RotatedToken{}, fault.InvalidField("grace_seconds", "%d is outside 0 to %d seconds", *s, int64(access.MaxGrace/time.Second))
		}
		grace = time.Duration(*s) * time.Second
	}
	t, secret, err := a.Tokens.Rotate(ctx, c.Caller, httpapi.Given(in.Project), in.ID, grace)
	if err != nil {
		return v1.RotatedToken{}, err
	}
	return v1.RotatedToken{Token: tokenOf(t), Secret: secret.Reveal()}, nil
}

func tokenOf(t access.Token) v1.Token {
	if !t.OldUntil.After(time.Now()) {
		t.OldUntil = time.Time{}
	}
	return v1.Token{
		ID: t.ID, Name: t.Name, Project: t.Project, Scopes: scopesOf(t.Scopes), Profile: t.Profile,
		CreatedAt: t.CreatedAt.UTC(), LastUsedAt: shape.TimeOrNull(t.LastUsedAt), ExpiresAt: shape.TimeOrNull(t.ExpiresAt),
		OldUntil: shape.TimeOrNull(t.OldUntil),
	}
}

// scopesOf is never nil, for JSON's sake.
func scopesOf(scopes []access.Scope) []string {
	out := make([]string, 0, len(scopes))
	for _, s := range scopes {
		out = append(out, string(s))
	}
	return out
}

// Tokens makes, lists, rotates and ends bearer tokens; *bearer.Authority does. It checks
// the caller's rights. An empty project is all that the caller manages.
type Tokens interface {
	Create(context.Context, access.Caller, bearer.NewToken) (access.Token, bearer.Secret, error)
	Rotate(ctx context.Context, c access.Caller, project, idOrName string, grace time.Duration) (access.Token, bearer.Secret, error)
	List(ctx context.Context, c access.Caller, project string) ([]*access.Token, error)
	Delete(ctx context.Context, c access.Caller, project, idOrName string) error
}
