// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/access/session"
	"sandpit.dev/fault"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

const adminToken = "correct horse battery staple"

// clock is a time that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

type fixture struct {
	*session.Service
	store  store.Store
	tokens *bearer.Authority
	clock  *clock
	admin  access.Caller
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "sandpit.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{store: s, clock: &clock{at: time.Now().UTC()}}
	if f.tokens, err = bearer.New(s, bearer.Options{Admins: []bearer.Secret{bearer.NewSecret(adminToken)}, Now: f.clock.Now}); err != nil {
		t.Fatal(err)
	}
	f.Service = session.New(s, f.tokens, session.Options{Now: f.clock.Now})
	if f.admin, err = f.tokens.Check(t.Context(), adminToken); err != nil {
		t.Fatal(err)
	}
	return f
}

// token makes one of the project "default".
func (f *fixture) token(t *testing.T, name string, scopes ...access.Scope) string {
	t.Helper()
	_, secret, err := f.tokens.Create(t.Context(), f.admin, bearer.NewToken{Name: name, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Reveal()
}

func (f *fixture) begin(t *testing.T, token string) (access.Session, string) {
	t.Helper()
	s, secret, _, err := f.Begin(t.Context(), token, session.Visitor{Address: "127.0.0.1", Agent: strings.Repeat("é", 300)})
	if err != nil {
		t.Fatal(err)
	}
	return s, secret.Reveal()
}

// in reports whether a cookie lets in.
func (f *fixture) in(t *testing.T, cookie string) (access.Caller, error) {
	t.Helper()
	c, _, release, err := f.Admit(t.Context(), cookie)
	if err == nil {
		release()
	}
	return c, err
}

func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("%s: got code %q (%v), want %q", what, got, err, want)
	}
}

func TestASessionHasTheRightsOfItsToken(t *testing.T) {
	f := newFixture(t)
	token := f.token(t, "ci", access.SandboxesRead)
	s, cookie := f.begin(t, token)
	got, err := f.in(t, cookie)
	if err != nil || got.Actor != "ci" || got.Project != "default" || got.Session != s.ID || len(got.Scopes) != 1 || got.Scopes[0] != access.SandboxesRead || !got.ExpiresAt.Equal(s.ExpiresAt) {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(s.Agent) > 210 || s.Address != "127.0.0.1" {
		t.Errorf("the record has %q", s.Agent)
	}
	if _, cookie := f.begin(t, adminToken); true {
		if got, err := f.in(t, cookie); err != nil || !got.May(access.ServerAdmin) {
			t.Errorf("the administrator: %+v, %v", got, err)
		}
	}
	for what, bad := range map[string]string{
		"nothing": "", "the token": token, "another": "spc_" + strings.Repeat("A", 52), "its id": s.ID, "cut": cookie[:len(cookie)-1], "longer": cookie + "A", "a code's form": "spo_" + cookie[4:],
	} {
		_, err := f.in(t, bad)
		wantCode(t, what, err, fault.Unauthenticated)
	}
	for what, bad := range map[string]string{"nothing": "", "no token": "spt_none", "a cookie": cookie} {
		_, _, _, err := f.Begin(t.Context(), bad, session.Visitor{})
		wantCode(t, "Begin with "+what, err, fault.Unauthenticated)
	}
	all, err := f.List(t.Context(), f.admin)
	if err != nil || len(all) != 2 {
		t.Errorf("there are %d sessions, %v", len(all), err)
	}
}

// TestASessionEndsWithItsToken has requests open by it meanwhile.
func TestASessionEndsWithItsToken(t *testing.T) {
	for what, end := range map[string]func(*fixture) error{
		"Deleted": func(f *fixture) error { return f.tokens.Delete(t.Context(), f.admin, "", "ci") },
		"Rotated": func(f *fixture) error { _, _, err := f.tokens.Rotate(t.Context(), f.admin, "", "ci", 0); return err },
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			_, cookie := f.begin(t, f.token(t, "ci"))
			_, valid, release, err := f.Admit(t.Context(), cookie)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if err := end(f); err != nil {
				t.Fatal(err)
			}
			<-valid.Done()
			wantCode(t, "what was open", context.Cause(valid), fault.Unauthenticated)
			_, err = f.in(t, cookie)
			wantCode(t, "Admit", err, fault.Unauthenticated)
			if all, err := f.List(t.Context(), f.admin); len(all) != 0 || err != nil {
				t.Errorf("it is listed still: %v, %v", all, err)
			}
		})
	}
	t.Run("NotByARotationWithAGrace", func(t *testing.T) {
		f := newFixture(t)
		_, cookie := f.begin(t, f.token(t, "ci"))
		if _, _, err := f.tokens.Rotate(t.Context(), f.admin, "", "ci", time.Hour); err != nil {
			t.Fatal(err)
		}
		_, err := f.in(t, cookie)
		wantCode(t, "within the grace", err, "")
		f.clock.pass(time.Hour)
		_, err = f.in(t, cookie)
		wantCode(t, "after it", err, fault.Unauthenticated)
	})
}

func TestASessionEndsByItself(t *testing.T) {
	t.Run("UnlessItIsUsed", func(t *testing.T) {
		f := newFixture(t)
		_, cookie := f.begin(t, adminToken)
		for range 3 {
			f.clock.pass(session.DefaultIdle)
			if _, err := f.in(t, cookie); err != nil {
				t.Fatal(err)
			}
		}
		f.clock.pass(session.DefaultIdle + time.Second)
		_, err := f.in(t, cookie)
		wantCode(t, "unused", err, fault.Unauthenticated)
	})
	t.Run("NotWhileSomethingIsOpen", func(t *testing.T) {
		f := newFixture(t)
		_, cookie := f.begin(t, adminToken)
		_, _, release, err := f.Admit(t.Context(), cookie)
		if err != nil {
			t.Fatal(err)
		}
		f.clock.pass(2 * session.DefaultIdle)
		f.begin(t, adminToken) // which removes what is over
		_, err = f.in(t, cookie)
		wantCode(t, "beside a stream", err, "")
		release()
		_, err = f.in(t, cookie)
		wantCode(t, "after it", err, "")
	})
	t.Run("AtItsTime", func(t *testing.T) {
		f := newFixture(t)
		s, cookie := f.begin(t, adminToken)
		for f.clock.Now().Before(s.ExpiresAt.Add(-time.Hour)) {
			f.clock.pass(time.Hour)
			if _, err := f.in(t, cookie); err != nil {
				t.Fatal(err)
			}
		}
		f.clock.pass(time.Hour)
		_, err := f.in(t, cookie)
		wantCode(t, "at its end", err, fault.Unauthenticated)
	})
	t.Run("WithWhatIsOpen", func(t *testing.T) {
		f := newFixture(t)
		f.Service = session.New(f.store, f.tokens, session.Options{Life: 20 * time.Millisecond, Now: f.clock.Now})
		_, cookie := f.begin(t, adminToken)
		_, valid, release, err := f.Admit(t.Context(), cookie)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		<-valid.Done()
		wantCode(t, "what was open", context.Cause(valid), fault.Unauthenticated)
	})
}

func TestACodeIsGoodOnce(t *testing.T) {
	f := newFixture(t)
	code := func(t *testing.T) string {
		t.Helper()
		_, secret, err := f.NewCode(t.Context(), f.token(t, t.Name()), session.Visitor{})
		if err != nil {
			t.Fatal(err)
		}
		return secret.Reveal()
	}
	redeem := func(code string) error {
		_, _, _, err := f.Redeem(t.Context(), code, session.Visitor{Agent: "browser"})
		return err
	}
	t.Run("AndForSignInAlone", func(t *testing.T) {
		c := code(t)
		_, err := f.in(t, c)
		wantCode(t, "as a cookie", err, fault.Unauthenticated)
		_, err = f.in(t, "spc_"+c[4:])
		wantCode(t, "as a cookie by another prefix", err, fault.Unauthenticated)
		s, secret, caller, err := f.Redeem(t.Context(), c, session.Visitor{Agent: "browser"})
		if err != nil || caller.Actor != t.Name() || s.Code || s.Agent != "browser" {
			t.Fatalf("got %+v, %+v, %v", s, caller, err)
		}
		if _, err := f.in(t, secret.Reveal()); err != nil {
			t.Error(err)
		}
		wantCode(t, "once more", redeem(c), fault.Unauthenticated)
		wantCode(t, "a cookie", redeem(secret.Reveal()), fault.Unauthenticated)
	})
	t.Run("AlsoForManyAtATime", func(t *testing.T) {
		c := code(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		passed := 0
		for range 20 {
			wg.Go(func() {
				err := redeem(c)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					passed++
				} else if !fault.Is(err, fault.Unauthenticated) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if passed != 1 {
			t.Errorf("it let %d in", passed)
		}
	})
	t.Run("WithinAMinute", func(t *testing.T) {
		c := code(t)
		f.clock.pass(session.CodeLife)
		wantCode(t, "late", redeem(c), fault.Unauthenticated)
	})
	t.Run("WhileItsTokenIsValid", func(t *testing.T) {
		c := code(t)
		if err := f.tokens.Delete(t.Context(), f.admin, "", t.Name()); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "of a deleted token", redeem(c), fault.Unauthenticated)
	})
}

func TestWhoSeesAndEndsSessions(t *testing.T) {
	f := newFixture(t)
	_, secret, err := f.tokens.Create(t.Context(), f.admin, bearer.NewToken{Name: "elsewhere", Project: "other", Scopes: []access.Scope{access.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{"a": f.token(t, "a"), "b": f.token(t, "b"), "boss": f.token(t, "boss", access.Admin), "elsewhere": secret.Reveal(), "admin": adminToken}
	sessions, cookies, callers := map[string]access.Session{}, map[string]string{}, map[string]access.Caller{}
	for name, token := range tokens {
		sessions[name], cookies[name] = f.begin(t, token)
		if callers[name], err = f.in(t, cookies[name]); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"a": 1, "b": 1, "boss": 4, "elsewhere": 1, "admin": 5} {
		if all, err := f.List(t.Context(), callers[name]); err != nil || len(all) != want {
			t.Errorf("%s sees %d sessions (%v), want %d", name, len(all), err, want)
		}
	}
	wantCode(t, "another token's", f.End(t.Context(), callers["a"], sessions["b"].ID), fault.NotFound)
	wantCode(t, "another project's", f.End(t.Context(), callers["elsewhere"], sessions["a"].ID), fault.NotFound)
	_, valid, release, err := f.Admit(t.Context(), cookies["b"])
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := f.End(t.Context(), callers["boss"], sessions["b"].ID); err != nil {
		t.Fatal(err)
	}
	<-valid.Done()
	_, err = f.in(t, cookies["b"])
	wantCode(t, "after its end", err, fault.Unauthenticated)
	if err := f.SignOut(t.Context(), callers["a"]); err != nil {
		t.Fatal(err)
	}
	_, err = f.in(t, cookies["a"])
	wantCode(t, "after signing out", err, fault.Unauthenticated)
	wantCode(t, "SignOut by a token", f.SignOut(t.Context(), f.admin), fault.State)
	if err := f.SignOut(t.Context(), callers["a"]); err != nil {
		t.Errorf("a second SignOut: %v", err)
	}
}

func TestTheOldestSessionOfATokenGoes(t *testing.T) {
	f := newFixture(t)
	token := f.token(t, "ci")
	other, otherCookie := f.begin(t, adminToken)
	_, first := f.begin(t, token)
	for range session.MaxSessions {
		f.clock.pass(time.Millisecond)
		f.begin(t, token)
	}
	_, err := f.in(t, first)
	wantCode(t, "the oldest", err, fault.Unauthenticated)
	if _, err := f.in(t, otherCookie); err != nil {
		t.Errorf("another token's, %s: %v", other.ID, err)
	}
}

func TestATokenOfOneSandboxSignsNobodyIn(t *testing.T) {
	f := newFixture(t)
	s := session.New(f.store, callers{access.Caller{Project: "default", Sandbox: "aaaaaaaaaaaaaaaa"}}, session.Options{})
	_, _, _, err := s.Begin(t.Context(), "sps_x", session.Visitor{})
	wantCode(t, "of one sandbox", err, fault.Denied)
	s = session.New(f.store, callers{access.Caller{Project: "default", Issuer: "https://id.example.org"}}, session.Options{})
	_, _, err = s.NewCode(t.Context(), "ey.x.y", session.Visitor{})
	wantCode(t, "of an issuer", err, fault.Denied)
}

// callers are tokens that are all of one caller.
type callers struct{ access.Caller }

func (c callers) Check(context.Context, string) (access.Caller, error) { return c.Caller, nil }

func (c callers) AdmitDigest(context.Context, [32]byte) (access.Caller, context.Context, func(), error) {
	return c.Caller, context.Background(), func() {}, nil
}

// slow is a store that does something between a read and its answer.
type slow struct {
	store.Store
	after func()
}

func (s *slow) View(ctx context.Context, fn func(store.Tx) error) error {
	err := s.Store.View(ctx, fn)
	if after := s.after; after != nil {
		s.after = nil
		after()
	}
	return err
}

// TestASessionThatEndsWhileItIsReadLetsNobodyIn ends it between the read and what holds the request.
func TestASessionThatEndsWhileItIsReadLetsNobodyIn(t *testing.T) {
	f := newFixture(t)
	s, cookie := f.begin(t, adminToken)
	between := &slow{Store: f.store}
	f.Service = session.New(between, f.tokens, session.Options{Now: f.clock.Now})
	between.after = func() {
		if err := f.End(t.Context(), f.admin, s.ID); err != nil {
			t.Error(err)
		}
	}
	_, err := f.in(t, cookie)
	wantCode(t, "Admit", err, fault.Unauthenticated)
}
