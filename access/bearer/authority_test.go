// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
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

// counting is a store that counts its Views, to distinguish memory from disk.
type counting struct {
	store.Store
	mu    sync.Mutex
	views int
	fail  error
}

func (c *counting) View(ctx context.Context, fn func(store.Tx) error) error {
	c.mu.Lock()
	c.views++
	err := c.fail
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.Store.View(ctx, fn)
}

type fixture struct {
	*bearer.Authority
	store *counting
	clock *clock
	log   *bytes.Buffer
	admin access.Caller
}

func newFixture(t testing.TB) *fixture {
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
	f := &fixture{store: &counting{Store: s}, clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, log: new(bytes.Buffer)}
	f.Authority, err = bearer.New(f.store, bearer.Options{
		Admins: []bearer.Secret{bearer.NewSecret(adminToken), bearer.NewSecret("another-admin-token")},
		Logger: slog.New(slog.NewJSONHandler(f.log, nil)), Now: f.clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.admin, err = f.Check(t.Context(), adminToken); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) create(t testing.TB, n bearer.NewToken) (access.Token, string) {
	t.Helper()
	made, secret, err := f.Create(t.Context(), f.admin, n)
	if err != nil {
		t.Fatal(err)
	}
	return made, secret.Reveal()
}

func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("%s: got code %q (%v), want %q", what, got, err, want)
	}
}

func TestCheck(t *testing.T) {
	t.Run("AnAdminTokenIsTheServersAdministrator", func(t *testing.T) {
		f := newFixture(t)
		for _, token := range []string{adminToken, "another-admin-token"} {
			got, err := f.Check(t.Context(), token)
			want := access.Caller{Project: "default", Actor: "admin-token", Scopes: []access.Scope{access.Admin, access.ServerAdmin}}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("Check: %v (-want +got):\n%s", err, diff)
			}
		}
		if f.store.views != 0 {
			t.Errorf("the store was asked %d times, want never", f.store.views)
		}
	})
	t.Run("ATokenIsItsCaller", func(t *testing.T) {
		f := newFixture(t)
		made, secret := f.create(t, bearer.NewToken{Name: "ci", Project: "team-a", Scopes: []access.Scope{access.SandboxesRead}})
		got, err := f.Check(t.Context(), secret)
		want := access.Caller{Project: "team-a", Actor: "ci", TokenID: made.ID, Scopes: []access.Scope{access.SandboxesRead}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Check: %v (-want +got):\n%s", err, diff)
		}
	})
	t.Run("AnythingElseIsUnauthenticated", func(t *testing.T) {
		f := newFixture(t)
		made, secret := f.create(t, bearer.NewToken{Name: "ci"})
		for name, token := range map[string]string{
			"None": "", "Short": "x", "Prefix": "spt_", "Case": strings.ToLower(secret), "Cut": secret[:len(secret)-1],
			"Longer": secret + "a", "LongerAdmin": adminToken + "a", "Unknown": "spt_" + strings.Repeat("a", 40), "Hash": string(made.Hash),
			"ID": made.ID, "Name": "ci", "Huge": strings.Repeat("x", 1<<20), "Hostile": "' OR 1=1 --\x00\xff", "Space": " " + secret,
			"CutAdmin": adminToken[:len(adminToken)-1], "Bearer": "Bearer " + secret,
		} {
			_, err := f.Check(t.Context(), token)
			wantCode(t, name, err, fault.Unauthenticated)
			if len(token) > 8 && strings.Contains(fmt.Sprint(fault.As(err).Message, fault.As(err).Remedy), token) {
				t.Errorf("%s: the error shows the token", name)
			}
		}
	})
	t.Run("ASecondCheckReadsNoDisk", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		for range 5 {
			if _, err := f.Check(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
		if f.store.views != 1 {
			t.Errorf("the store was asked %d times, want once", f.store.views)
		}
	})
	t.Run("ADeletedTokenIsNotValidAnyMore", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		if _, err := f.Check(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if err := f.Delete(t.Context(), f.admin, "default", "ci"); err != nil {
			t.Fatal(err)
		}
		_, err := f.Check(t.Context(), secret)
		wantCode(t, "Check", err, fault.Unauthenticated)
	})
	t.Run("ATokenThatIsDeletedWhileItIsReadDoesNotStay", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		slow := &late{Store: f.store.Store}
		a, err := bearer.New(slow, bearer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		slow.after = func() {
			slow.after = nil
			if err := a.Delete(t.Context(), f.admin, "", "ci"); err != nil {
				t.Error(err)
			}
		}
		_, _ = a.Check(t.Context(), secret) // it was valid when it was read
		_, err = a.Check(t.Context(), secret)
		wantCode(t, "Check after Delete", err, fault.Unauthenticated)
	})
	t.Run("ATokenEndsAtItsTime", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci", ExpiresAt: f.clock.Now().Add(time.Hour)})
		f.clock.pass(time.Hour - 1)
		if _, err := f.Check(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		f.clock.pass(1)
		for range 2 {
			_, err := f.Check(t.Context(), secret)
			wantCode(t, "Check", err, fault.Unauthenticated)
		}
	})
	t.Run("AStoreThatFailsIsNoBadToken", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		f.store.fail = fault.New(fault.Unavailable, "the disk is gone")
		_, err := f.Check(t.Context(), secret)
		wantCode(t, "Check", err, fault.Unavailable)
	})
	t.Run("CallersCannotChangeEachOther", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		first, err := f.Check(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		first.Scopes[0] = access.Admin
		second, err := f.Check(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, "Require", second.Require(access.Admin), fault.Denied)
	})
}

// late does something between a View and its answer.
type late struct {
	store.Store
	after func()
}

func (l *late) View(ctx context.Context, fn func(store.Tx) error) error {
	err := l.Store.View(ctx, fn)
	if l.after != nil {
		l.after()
	}
	return err
}

func TestCreate(t *testing.T) {
	t.Run("TheDefaultIsToReadAndWrite", func(t *testing.T) {
		f := newFixture(t)
		made, secret := f.create(t, bearer.NewToken{Name: "ci"})
		want := access.Token{ID: made.ID, Hash: made.Hash, Project: "default", Name: "ci", CreatedAt: f.clock.Now(),
			Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("Create (-want +got):\n%s", diff)
		}
		if !strings.HasPrefix(secret, "spt_") || len(secret) != 44 {
			t.Errorf("got a secret of %d characters beginning with %q, want spt_ and 40 more", len(secret), secret[:4])
		}
	})
	t.Run("WithoutAdminItIsDenied", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		caller, err := f.Check(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = f.Create(t.Context(), caller, bearer.NewToken{Name: "more", Scopes: []access.Scope{access.Admin}})
		wantCode(t, "Create", err, fault.Denied)
		_, err = f.List(t.Context(), caller, "")
		wantCode(t, "List", err, fault.Denied)
		wantCode(t, "Delete", f.Delete(t.Context(), caller, "", "ci"), fault.Denied)
		_, _, err = f.Create(t.Context(), access.Caller{}, bearer.NewToken{Name: "more"})
		wantCode(t, "Create by no one", err, fault.Denied)
	})
	t.Run("AProjectsAdministratorStaysInIt", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "boss", Project: "team-a", Scopes: []access.Scope{access.Admin}})
		f.create(t, bearer.NewToken{Name: "other", Project: "team-b"})
		boss, err := f.Check(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		made, _, err := f.Create(t.Context(), boss, bearer.NewToken{Name: "helper"})
		if err != nil || made.Project != "team-a" {
			t.Errorf("Create: got project %q, %v, want team-a", made.Project, err)
		}
		_, _, err = f.Create(t.Context(), boss, bearer.NewToken{Name: "helper", Project: "team-b"})
		wantCode(t, "Create elsewhere", err, fault.Denied)
		_, err = f.List(t.Context(), boss, "team-b")
		wantCode(t, "List elsewhere", err, fault.Denied)
		wantCode(t, "Delete elsewhere", f.Delete(t.Context(), boss, "team-b", "other"), fault.Denied)
		wantCode(t, "Delete by name", f.Delete(t.Context(), boss, "", "other"), fault.NotFound)
		var got []string
		all, err := f.List(t.Context(), boss, "")
		for _, one := range all {
			got = append(got, one.Name)
		}
		if diff := cmp.Diff([]string{"boss", "helper"}, got); diff != "" || err != nil {
			t.Errorf("List: %v (-want +got):\n%s", err, diff)
		}
		if all, err = f.List(t.Context(), f.admin, ""); len(all) != 3 || err != nil {
			t.Errorf("List by the server's administrator: got %d tokens, %v, want 3", len(all), err)
		}
	})
	t.Run("BadInputIsRefused", func(t *testing.T) {
		f := newFixture(t)
		f.create(t, bearer.NewToken{Name: "taken"})
		for name, c := range map[string]struct {
			n    bearer.NewToken
			want fault.Code
		}{
			"NoName":       {bearer.NewToken{}, fault.Invalid},
			"LongName":     {bearer.NewToken{Name: strings.Repeat("é", 65)}, fault.Invalid},
			"ControlName":  {bearer.NewToken{Name: "a\nb"}, fault.Invalid},
			"BrokenName":   {bearer.NewToken{Name: "a\xff"}, fault.Invalid},
			"SystemName":   {bearer.NewToken{Name: "system"}, fault.Invalid},
			"AdminName":    {bearer.NewToken{Name: "admin-token"}, fault.Invalid},
			"TakenName":    {bearer.NewToken{Name: "taken"}, fault.Exists},
			"Scope":        {bearer.NewToken{Name: "n", Scopes: []access.Scope{"everything"}}, fault.Invalid},
			"UpperProject": {bearer.NewToken{Name: "n", Project: "Team"}, fault.Invalid},
			"DashProject":  {bearer.NewToken{Name: "n", Project: "-team"}, fault.Invalid},
			"LongProject":  {bearer.NewToken{Name: "n", Project: strings.Repeat("a", 64)}, fault.Invalid},
			"PathProject":  {bearer.NewToken{Name: "n", Project: "../x"}, fault.Invalid},
			"Expired":      {bearer.NewToken{Name: "n", ExpiresAt: f.clock.Now()}, fault.Invalid},
		} {
			_, secret, err := f.Create(t.Context(), f.admin, c.n)
			wantCode(t, name, err, c.want)
			if secret.Reveal() != "" {
				t.Errorf("%s: a secret came with an error", name)
			}
		}
		f.create(t, bearer.NewToken{Name: strings.Repeat("é", 64), Project: strings.Repeat("a", 63)})
		_, _, err := f.Create(t.Context(), f.admin, bearer.NewToken{Name: "n", Scopes: []access.Scope{"everything"}})
		for _, s := range access.Scopes() {
			if !strings.Contains(err.Error(), string(s)) {
				t.Errorf("the message %q does not list the scope %s", err, s)
			}
		}
	})
}

func TestRun(t *testing.T) {
	lastUse := func(t *testing.T, f *fixture) time.Time {
		t.Helper()
		all, err := f.List(t.Context(), f.admin, "")
		if err != nil || len(all) != 1 {
			t.Fatalf("List: %d tokens, %v", len(all), err)
		}
		return all[0].LastUsedAt
	}
	check := func(t *testing.T, f *fixture, secret string) {
		t.Helper()
		if _, err := f.Check(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("LastUsesAreWrittenOnceAMinute", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := f.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		first := f.clock.Now()
		changed := f.store.Changed()
		check(t, f, secret)
		<-changed
		if got := lastUse(t, f); !got.Equal(first) {
			t.Errorf("got %s, want %s", got, first)
		}
		f.clock.pass(59 * time.Second)
		check(t, f, secret)
		f.clock.pass(time.Second)
		changed = f.store.Changed()
		check(t, f, secret)
		<-changed
		if got, want := lastUse(t, f), first.Add(time.Minute); !got.Equal(want) {
			t.Errorf("got %s, want %s", got, want)
		}
		cancel()
		wg.Wait()
	})
	t.Run("WhatIsPendingIsWrittenAtTheEnd", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		check(t, f, secret)
		if got := lastUse(t, f); !got.IsZero() {
			t.Errorf("a Check wrote %s by itself", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := lastUse(t, f); !got.Equal(f.clock.Now()) {
			t.Errorf("got %s, want %s", got, f.clock.Now())
		}
	})
	t.Run("ATokenThatIsGoneFromTheStoreLeavesTheCache", func(t *testing.T) {
		f := newFixture(t)
		_, secret := f.create(t, bearer.NewToken{Name: "ci"})
		check(t, f, secret)
		if err := f.store.Update(t.Context(), func(tx store.Tx) error { return tx.Tokens().Delete("", "ci") }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Run(ctx); err != nil {
			t.Fatal(err)
		}
		_, err := f.Check(t.Context(), secret)
		wantCode(t, "Check", err, fault.Unauthenticated)
	})
}

func TestSecret(t *testing.T) {
	t.Run("NothingShowsIt", func(t *testing.T) {
		const text = "spt_this-must-not-be-seen"
		s := bearer.NewSecret(text)
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
			fmt.Fprintf(&out, verb+verb+verb, s, &s, struct{ S bearer.Secret }{s})
		}
		js, err := json.Marshal(map[string]any{"a": s, "b": &s})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(js)
		log := slog.New(slog.NewJSONHandler(&out, nil))
		log.Info("made", "secret", s, "pointer", &s, "inside", struct{ S bearer.Secret }{s})
		slog.New(slog.NewTextHandler(&out, nil)).Info("made", "secret", s, "inside", struct{ S bearer.Secret }{s})
		if strings.Contains(out.String(), "must-not") || strings.Contains(out.String(), fmt.Sprintf("%x", text)) {
			t.Errorf("the secret is in %s", out.String())
		}
		if s.Reveal() != text {
			t.Error("Reveal does not give the text")
		}
	})
	t.Run("TheLogOfACreateHoldsNeitherSecretNorHash", func(t *testing.T) {
		f := newFixture(t)
		made, secret := f.create(t, bearer.NewToken{Name: "ci"})
		log := f.log.String()
		js, err := json.Marshal(made.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log, made.ID) || strings.Contains(log, secret) || strings.Contains(log, strings.Trim(string(js), `"`)) {
			t.Errorf("the log is %s", log)
		}
	})
}

func TestCheckAdminToken(t *testing.T) {
	for _, good := range []string{strings.Repeat("a", 16), strings.Repeat("é", 256), adminToken, "p@ss\"w'ord$%^&*()"} {
		if err := bearer.CheckAdminToken(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for name, bad := range map[string]string{
		"Empty": "", "Short": "onlyfifteenchar", "Long": strings.Repeat("a", 257), "Tab": "with\ta-tab-inside-it", "NUL": "with\x00a-nul-inside-it",
		"Newline": "ends-with-a-newline\n", "Broken": "is-not-utf-8-at-all\xff", "Space": " begins-with-a-space",
	} {
		err := bearer.CheckAdminToken(bad)
		wantCode(t, name, err, fault.Invalid)
		if bad != "" && (strings.Contains(err.Error(), bad) || strings.Contains(err.Error(), fmt.Sprintf("%q", bad))) {
			t.Errorf("%s: the error shows the token", name)
		}
		if _, err := bearer.New(nil, bearer.Options{Admins: []bearer.Secret{bearer.NewSecret(bad)}}); err == nil {
			t.Errorf("%s: New took it", name)
		}
	}
	if e, ok := errors.AsType[*fault.Error](bearer.CheckAdminToken("x")); !ok || !strings.Contains(e.Message, "16 to 256") {
		t.Errorf("got %v, want a message with the bound", e)
	}
}
