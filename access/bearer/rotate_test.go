// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/fault"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

func (f *fixture) rotate(t testing.TB, name string, grace time.Duration) (access.Token, string) {
	t.Helper()
	made, secret, err := f.Rotate(t.Context(), f.admin, "", name, grace)
	if err != nil {
		t.Fatal(err)
	}
	return made, secret.Reveal()
}

func (f *fixture) valid(t testing.TB, secrets ...string) (out []bool) {
	t.Helper()
	for _, s := range secrets {
		_, err := f.Check(t.Context(), s)
		if err != nil && !fault.Is(err, fault.Unauthenticated) {
			t.Fatal(err)
		}
		out = append(out, err == nil)
	}
	return out
}

func TestRotate(t *testing.T) {
	wantValid := func(t *testing.T, f *fixture, secrets []string, want ...bool) {
		t.Helper()
		for i, got := range f.valid(t, secrets...) {
			if got != want[i] {
				t.Errorf("secret %d: valid %v, want %v", i, got, want[i])
			}
		}
	}
	t.Run("TheOldSecretIsValidForTheGrace", func(t *testing.T) {
		f := newFixture(t)
		made, first := f.create(t, bearer.NewToken{Name: "ci"})
		wantValid(t, f, []string{first}, true) // and is in the cache
		rotated, second := f.rotate(t, "ci", time.Hour)
		if rotated.ID != made.ID || rotated.Name != "ci" || second == first || !rotated.OldUntil.Equal(f.clock.Now().Add(time.Hour)) {
			t.Errorf("got %+v", rotated)
		}
		wantValid(t, f, []string{first, second}, true, true)
		c, err := f.Check(t.Context(), first)
		if err != nil || c.TokenID != made.ID || c.Actor != "ci" || !c.ExpiresAt.Equal(rotated.OldUntil) {
			t.Errorf("got %+v, %v", c, err)
		}
		f.clock.pass(time.Hour - time.Microsecond)
		wantValid(t, f, []string{first, second}, true, true)
		f.clock.pass(time.Microsecond)
		wantValid(t, f, []string{first, second}, false, true)
		if strings.Contains(f.log.String(), second) || strings.Contains(f.log.String(), first) {
			t.Error("a secret is in the log")
		}
	})
	t.Run("WithoutAGraceAtOnce", func(t *testing.T) {
		f := newFixture(t)
		_, first := f.create(t, bearer.NewToken{Name: "ci"})
		_, second := f.rotate(t, "ci", time.Hour)
		_, third := f.rotate(t, "ci", 0)
		wantValid(t, f, []string{first, second, third}, false, false, true)
	})
	t.Run("AnAnswerThatWasLostLocksNobodyOut", func(t *testing.T) {
		f := newFixture(t)
		_, first := f.create(t, bearer.NewToken{Name: "ci"})
		f.rotate(t, "ci", time.Hour) // nobody has this secret
		_, third := f.rotate(t, "ci", time.Hour)
		wantValid(t, f, []string{first, third}, true, true)
	})
	t.Run("ADeletionEndsAll", func(t *testing.T) {
		f := newFixture(t)
		_, first := f.create(t, bearer.NewToken{Name: "ci"})
		_, second := f.rotate(t, "ci", time.Hour)
		wantValid(t, f, []string{first, second}, true, true)
		if err := f.Delete(t.Context(), f.admin, "", "ci"); err != nil {
			t.Fatal(err)
		}
		wantValid(t, f, []string{first, second}, false, false)
	})
	t.Run("BothNoteTheLastUse", func(t *testing.T) {
		f := newFixture(t)
		_, first := f.create(t, bearer.NewToken{Name: "ci"})
		f.rotate(t, "ci", time.Hour)
		wantValid(t, f, []string{first}, true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Run(ctx); err != nil {
			t.Fatal(err)
		}
		all, err := f.List(t.Context(), f.admin, "")
		if err != nil || len(all) != 1 || !all[0].LastUsedAt.Equal(f.clock.Now()) {
			t.Errorf("got %+v, %v", all, err)
		}
	})
	t.Run("WhatMayNotBe", func(t *testing.T) {
		f := newFixture(t)
		_, first := f.create(t, bearer.NewToken{Name: "ci", Project: "team-a", ExpiresAt: f.clock.Now().Add(time.Hour)})
		_, boss := f.create(t, bearer.NewToken{Name: "boss", Scopes: []access.Scope{access.Admin}})
		ci, err := f.Check(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		chief, err := f.Check(t.Context(), boss)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			by            access.Caller
			project, what string
			grace         time.Duration
			want          fault.Code
		}{
			"WithoutAdmin":     {ci, "", "ci", 0, fault.Denied},
			"ByNobody":         {access.Caller{}, "", "ci", 0, fault.Denied},
			"AnothersProject":  {chief, "team-a", "ci", 0, fault.Denied},
			"AnothersByName":   {chief, "", "ci", 0, fault.NotFound},
			"Nothing":          {f.admin, "", "none", 0, fault.NotFound},
			"TheServersOwn":    {f.admin, "", "admin-token", 0, fault.NotFound},
			"ANegativeGrace":   {f.admin, "", "ci", -1, fault.Invalid},
			"AnEndlessGrace":   {f.admin, "", "ci", access.MaxGrace + 1, fault.Invalid},
			"ABadProject":      {f.admin, "../x", "ci", 0, fault.Invalid},
			"AnotherProjectId": {chief, "", ci.TokenID, 0, fault.NotFound},
		} {
			_, secret, err := f.Rotate(t.Context(), c.by, c.project, c.what, c.grace)
			wantCode(t, name, err, c.want)
			if secret.Reveal() != "" {
				t.Errorf("%s: a secret came with an error", name)
			}
		}
		wantValid(t, f, []string{first}, true)
		f.clock.pass(time.Hour)
		_, _, err = f.Rotate(t.Context(), f.admin, "", "ci", 0)
		wantCode(t, "an expired one", err, fault.State)
	})
}

func TestWhatAnOldSecretHoldsEndsWithIt(t *testing.T) {
	f := newFixture(t)
	synctest.Test(t, func(t *testing.T) {
		_, first := f.create(t, bearer.NewToken{Name: "ci"})
		_, byFirst, release, err := f.Admit(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		_, second := f.rotate(t, "ci", time.Hour)
		_, bySecond, release, err := f.Admit(t.Context(), second)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		time.Sleep(time.Hour)
		synctest.Wait()
		if byFirst.Err() != nil {
			t.Fatal("it ended before the store's clock said so")
		}
		f.clock.pass(time.Hour)
		wantEnd(t, byFirst)
		if bySecond.Err() != nil {
			t.Error("what the new secret holds ended, too")
		}
		f.rotate(t, "ci", 0)
		wantEnd(t, bySecond)
	})
}

func TestATokenThatIsRotatedWhileItIsAdmitted(t *testing.T) {
	f := newFixture(t)
	_, secret := f.create(t, bearer.NewToken{Name: "raced"})
	for range 200 {
		next := make(chan string, 1)
		go func() {
			_, s, err := f.Rotate(context.WithoutCancel(t.Context()), f.admin, "", "raced", 0)
			if err != nil {
				t.Error(err)
			}
			next <- s.Reveal()
		}()
		_, valid, release, err := f.Admit(t.Context(), secret)
		secret = <-next
		if err == nil {
			wantEnd(t, valid) // and does not hang
			release()
		}
	}
}

// The server that comes after one that was killed knows both secrets.
func TestARotationIsOnRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandpit.db")
	var first, second string
	for n := range 2 {
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		a, err := bearer.New(store.Store(s), bearer.Options{Admins: []bearer.Secret{bearer.NewSecret(adminToken)}})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			admin, err := a.Check(t.Context(), adminToken)
			if err != nil {
				t.Fatal(err)
			}
			_, made, err := a.Create(t.Context(), admin, bearer.NewToken{Name: "ci"})
			if err != nil {
				t.Fatal(err)
			}
			_, rotated, err := a.Rotate(t.Context(), admin, "", "ci", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			first, second = made.Reveal(), rotated.Reveal()
		}
		for _, secret := range []string{first, second} {
			if _, err := a.Check(t.Context(), secret); err != nil {
				t.Errorf("server %d: %v", n, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
