// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// boxes are sandboxes of the project red, by the round of their tokens.
type boxes struct {
	mu    sync.Mutex
	round map[sandbox.ID]int64
	place map[sandbox.ID]sandbox.ID // of those that are gone: who has it
}

func (b *boxes) Successor(_ context.Context, id sandbox.ID) (sandbox.ID, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if by := b.place[id]; by != "" {
		return by, nil
	}
	return "", fault.New(fault.NotFound, "nobody has the place of %s", id)
}

func (b *boxes) TokenRound(_ context.Context, id sandbox.ID) (string, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.round[id]
	if !ok {
		return "", 0, fault.New(fault.NotFound, "there is no sandbox %s", id)
	}
	return "red", n, nil
}

func (b *boxes) set(id sandbox.ID, round int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.round[id] = round
}

func newBoxes(t *testing.T, f *fixture, key byte, ids ...sandbox.ID) *boxes {
	t.Helper()
	b := &boxes{round: make(map[sandbox.ID]int64)}
	for _, id := range ids {
		b.set(id, 3)
	}
	if err := f.ServeSandboxes(bytes.Repeat([]byte{key}, bearer.SandboxKeySize), b); err != nil {
		t.Fatal(err)
	}
	return b
}

func wantUnauthenticated(t *testing.T, f *fixture, what, token string) {
	t.Helper()
	if c, err := f.Check(t.Context(), token); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("%s: got %+v, %v, want Unauthenticated", what, c, err)
	}
}

func TestATokenOfOneSandboxIsItsOwn(t *testing.T) {
	f := newFixture(t)
	one, two := sandbox.NewID(), sandbox.NewID()
	b := newBoxes(t, f, 1, one, two)
	token := access.SandboxToken{Sandbox: one, Name: "agent ü", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesPorts}, ExpiresAt: f.clock.Now().Add(time.Hour).Truncate(time.Second)}
	text := f.SignSandbox(token, 3).Reveal()
	c, err := f.Check(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if c.Project != "red" || c.Sandbox != one || c.Actor != "sandbox:agent ü" || !slices.Equal(c.Scopes, token.Scopes) || !c.ExpiresAt.Equal(token.ExpiresAt) || c.TokenID == "" {
		t.Errorf("got %+v", c)
	}
	for _, s := range append(access.Scopes(), access.SandboxesPorts, access.ServerAdmin) {
		if err := c.Require(s); !fault.Is(err, fault.Denied) {
			t.Errorf("it may %s beyond its sandbox: %v", s, err)
		}
		if got, want := c.Inside().May(s), slices.Contains(token.Scopes, s); got != want {
			t.Errorf("inside it may %s: %v, want %v", s, got, want)
		}
	}
	t.Run("NoByteOfItCanBeAnother", func(t *testing.T) {
		for i := range len(text) {
			for _, other := range []byte{'A', 'b', '_', '.', text[i] ^ 1} {
				if other != text[i] {
					wantUnauthenticated(t, f, "changed", text[:i]+string(other)+text[i+1:])
				}
			}
		}
		for i := range len(text) {
			wantUnauthenticated(t, f, "cut", text[:i])
		}
		wantUnauthenticated(t, f, "longer", text+"A")
		wantUnauthenticated(t, f, "long", "sps_"+strings.Repeat("A", 1000))
	})
	t.Run("AnotherSandboxSignsOtherwise", func(t *testing.T) {
		token := token
		token.Sandbox = two
		_, sum, _ := strings.Cut(text, ".")
		body, _, _ := strings.Cut(f.SignSandbox(token, 3).Reveal(), ".")
		wantUnauthenticated(t, f, "the body of another", body+"."+sum)
	})
	t.Run("AnotherKeySignsOtherwise", func(t *testing.T) {
		g := newFixture(t)
		newBoxes(t, g, 2, one)
		wantUnauthenticated(t, f, "of another server", g.SignSandbox(token, 3).Reveal())
	})
	t.Run("OneWithoutItsSandbox", func(t *testing.T) {
		token := token
		token.Sandbox = sandbox.NewID()
		wantUnauthenticated(t, f, "of none", f.SignSandbox(token, 3).Reveal())
	})
	t.Run("OneThatWasPromotedAway", func(t *testing.T) {
		token := token
		token.Sandbox = sandbox.NewID()
		b.place = map[sandbox.ID]sandbox.ID{token.Sandbox: two}
		for _, round := range []int64{0, 3, 63} {
			text := f.SignSandbox(token, round).Reveal()
			c, err := f.Check(t.Context(), text)
			if !fault.Is(err, fault.Unauthenticated) || fault.ReasonOf(err) != sandbox.ReasonPromoted || !strings.Contains(err.Error(), string(two)) {
				t.Errorf("in round %d: got %+v, %v, want Unauthenticated that names %s", round, c, err, two)
			}
			// Who has none that we signed is told nothing.
			body, _, _ := strings.Cut(text, ".")
			_, sum, _ := strings.Cut(f.SignSandbox(access.SandboxToken{Sandbox: one, Name: "x"}, round).Reveal(), ".")
			if _, err := f.Check(t.Context(), body+"."+sum); !fault.Is(err, fault.Unauthenticated) || strings.Contains(err.Error(), string(two)) || fault.ReasonOf(err) != "" {
				t.Errorf("with another's signature: %v", err)
			}
		}
	})
	t.Run("ItExpires", func(t *testing.T) {
		f.clock.pass(time.Hour)
		wantUnauthenticated(t, f, "expired", text)
	})
	t.Run("ARoundEndsAll", func(t *testing.T) {
		token := token
		token.ExpiresAt = time.Time{}
		text := f.SignSandbox(token, 3).Reveal()
		if _, err := f.Check(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		b.set(one, 4)
		wantUnauthenticated(t, f, "of an earlier round", text)
		wantUnauthenticated(t, f, "of a later round", f.SignSandbox(token, 5).Reveal())
		if _, err := f.Check(t.Context(), f.SignSandbox(token, 4).Reveal()); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutAKeyThereAreNoTokensOfSandboxes(t *testing.T) {
	f := newFixture(t)
	g := newFixture(t)
	id := sandbox.NewID()
	newBoxes(t, g, 1, id)
	wantUnauthenticated(t, f, "no key", g.SignSandbox(access.SandboxToken{Sandbox: id, Name: "x"}, 3).Reveal())
	if err := f.ServeSandboxes([]byte("short"), &boxes{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}

func TestWhatASandboxesTokenHoldsEndsWithItsRound(t *testing.T) {
	f := newFixture(t)
	one, two := sandbox.NewID(), sandbox.NewID()
	b := newBoxes(t, f, 1, one, two)
	admit := func(id sandbox.ID, expires time.Time) (context.Context, func()) {
		t.Helper()
		_, valid, release, err := f.Admit(t.Context(), f.SignSandbox(access.SandboxToken{Sandbox: id, Name: "x", Scopes: access.SandboxScopes(), ExpiresAt: expires}, 3).Reveal())
		if err != nil {
			t.Fatal(err)
		}
		return valid, release
	}
	first, release := admit(one, time.Time{})
	defer release()
	again, releaseAgain := admit(one, f.clock.Now().Add(time.Hour).Truncate(time.Second))
	defer releaseAgain()
	other, releaseOther := admit(two, time.Time{})
	defer releaseOther()
	b.set(one, 4)
	f.EndSandbox(one)
	wantEnd(t, first)
	wantEnd(t, again)
	if other.Err() != nil {
		t.Error("the other sandbox's ended, too")
	}
}

func TestASandboxesTokenThatEndsWhileItIsAdmitted(t *testing.T) {
	f := newFixture(t)
	id := sandbox.NewID()
	b := newBoxes(t, f, 1, id)
	for round := range int64(200) {
		b.set(id, round)
		text := f.SignSandbox(access.SandboxToken{Sandbox: id, Name: "raced"}, round).Reveal()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.set(id, round+1)
			f.EndSandbox(id)
		}()
		_, valid, release, err := f.Admit(t.Context(), text)
		<-ended
		if err == nil {
			wantEnd(t, valid) // and does not hang
			release()
		}
	}
}

func TestAnExpiryEndsWhatASandboxesTokenHolds(t *testing.T) {
	f := newFixture(t)
	id := sandbox.NewID()
	newBoxes(t, f, 1, id)
	synctest.Test(t, func(t *testing.T) {
		_, valid, release, err := f.Admit(t.Context(), f.SignSandbox(access.SandboxToken{Sandbox: id, Name: "x", ExpiresAt: f.clock.Now().Add(time.Hour).Truncate(time.Second)}, 3).Reveal())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		f.clock.pass(time.Hour)
		time.Sleep(time.Hour + time.Second)
		wantEnd(t, valid)
	})
}

func FuzzSandboxToken(f *testing.F) {
	t := newFixture(f)
	id := sandbox.NewID()
	b := &boxes{round: map[sandbox.ID]int64{id: 1}}
	if err := t.ServeSandboxes(bytes.Repeat([]byte{1}, bearer.SandboxKeySize), b); err != nil {
		f.Fatal(err)
	}
	good := t.SignSandbox(access.SandboxToken{Sandbox: id, Name: "x", Scopes: access.SandboxScopes()}, 1).Reveal()
	f.Add(good)
	f.Add("sps_.")
	f.Add(strings.ToLower(good))
	f.Fuzz(func(tt *testing.T, text string) {
		c, err := t.Check(tt.Context(), text)
		if err == nil && text != good && text != adminToken {
			tt.Errorf("%q is a token: %+v", text, c)
		}
	})
}
