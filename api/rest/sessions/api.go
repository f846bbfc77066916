// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"net/http"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/access/session"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Sessions signs people in and out; *session.Service does.
type Sessions interface {
	Begin(ctx context.Context, token string, from session.Visitor) (access.Session, bearer.Secret, access.Caller, error)
	NewCode(ctx context.Context, token string, from session.Visitor) (access.Session, bearer.Secret, error)
	Redeem(ctx context.Context, code string, from session.Visitor) (access.Session, bearer.Secret, access.Caller, error)
	List(ctx context.Context, c access.Caller) ([]*access.Session, error)
	End(ctx context.Context, c access.Caller, id string) error
	SignOut(ctx context.Context, c access.Caller) error
}

// API serves the operations on sessions. It is safe for concurrent use.
type API struct {
	Sessions Sessions     // nil: nobody signs in
	Guard    *guard.Guard // required
}

// Operations returns the rows of the coat's table that the API serves.
func (a *API) Operations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Op("signIn", "POST /session", "Exchange a token, or a code, for a session: the answer sets a cookie that scripts of the server's own pages may then use in place of a token, for /v1 alone. It is no operation for programs: they send their token.", http.StatusCreated, a.signIn).
			Example(v1.SignIn{Token: "spt_…"}).Open(true).Recorded().
			Extend(idempotency.Keyless("a second sign-in is a second session, and each ends by itself")),
		idempotency.Op("signOut", "DELETE /session", "End the session that the request came by, with the streams and terminals that it has open.", http.StatusNoContent, a.signOut),
		idempotency.Op("listSessions", "GET /sessions", "List the people who are signed in by the caller's token, oldest first; with the scope admin those of the project, with server:admin all.", http.StatusOK, a.list),
		idempotency.Op("endSession", "DELETE /sessions/{id}", "End a session, with the streams and terminals that it has open.", http.StatusNoContent, a.end),
		idempotency.Op("createSessionCode", "POST /session-codes", "Make a code that is good for one sign-in within a minute, by the token of the request: so a program signs the browser of its own user in.", http.StatusCreated, a.code).
			Extend(idempotency.Keyless("a second code is another, and each is good for a minute")),
	}
}

func (a *API) none() error {
	if a.Sessions != nil {
		return nil
	}
	return fault.New(fault.Unsupported, "nobody signs in at this server: its console is switched off").
		WithRemedy("set console.enabled in its configuration")
}

func visitor(r *http.Request) session.Visitor {
	return session.Visitor{Address: guard.Address(r), Agent: strings.ToValidUTF8(r.UserAgent(), "?")}
}

type signIn struct {
	Body v1.SignIn
}

func (a *API) signIn(ctx context.Context, c *httpapi.Call, in *signIn) (v1.Session, error) {
	if err := a.none(); err != nil {
		return v1.Session{}, err
	}
	if (in.Body.Token == "") == (in.Body.Code == "") {
		return v1.Session{}, fault.InvalidField("token", "give one of token and code")
	}
	if err := guard.KeepsCookie(c.R); err != nil {
		return v1.Session{}, err
	}
	begin, with := a.Sessions.Begin, in.Body.Token
	if in.Body.Code != "" {
		begin, with = a.Sessions.Redeem, in.Body.Code
	}
	s, secret, caller, err := begin(ctx, strings.TrimSpace(with), visitor(c.R))
	if fault.Is(err, fault.Unauthenticated) {
		err = a.Guard.Tried(c.W, c.R, err)
	}
	if err != nil {
		return v1.Session{}, err
	}
	guard.AdmitCaller(c.R, caller)
	http.SetCookie(c.W, guard.NewCookie(secret.Reveal(), s.ExpiresAt.Sub(s.CreatedAt)))
	return shape(&s, s.ID), nil
}

func (a *API) signOut(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (httpapi.None, error) {
	if err := a.none(); err != nil {
		return httpapi.None{}, err
	}
	if err := a.Sessions.SignOut(ctx, c.Caller); err != nil {
		return httpapi.None{}, err
	}
	http.SetCookie(c.W, guard.EndedCookie())
	return httpapi.None{}, nil
}

func (a *API) list(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.SessionList, error) {
	out := v1.SessionList{Items: []v1.Session{}}
	if err := a.none(); err != nil {
		return out, err
	}
	all, err := a.Sessions.List(ctx, c.Caller)
	for _, s := range all {
		out.Items = append(out.Items, shape(s, c.Caller.Session))
	}
	return out, err
}

type byID struct {
	ID string `path:"id" doc:"the session's id"`
}

func (a *API) end(ctx context.Context, c *idempotency.Call, in *byID) (httpapi.None, error) {
	if err := a.none(); err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, a.Sessions.End(ctx, c.Caller, in.ID)
}

func (a *API) code(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.SessionCode, error) {
	if err := a.none(); err != nil {
		return v1.SessionCode{}, err
	}
	token := guard.BearerToken(c.R)
	if token == "" {
		return v1.SessionCode{}, fault.New(fault.Denied, "a session makes no codes: they are made by a token").WithRemedy("run sandpit console")
	}
	s, secret, err := a.Sessions.NewCode(ctx, token, visitor(c.R))
	if err != nil {
		return v1.SessionCode{}, err
	}
	return v1.SessionCode{Code: secret.Reveal(), ExpiresAt: s.ExpiresAt.UTC()}, nil
}

func shape(s *access.Session, current string) v1.Session {
	out := v1.Session{
		ID: s.ID, Project: s.Project, Actor: s.Actor, Address: s.Address, Agent: s.Agent, Current: s.ID == current,
		CreatedAt: s.CreatedAt.UTC(), LastUsedAt: s.LastUsedAt.UTC().Truncate(time.Second), ExpiresAt: s.ExpiresAt.UTC(),
	}
	if s.TokenID != "" {
		out.TokenID = &s.TokenID
	}
	return out
}
