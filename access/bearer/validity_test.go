// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/fault"
)

func (f *fixture) admit(t *testing.T, n bearer.NewToken) (access.Token, context.Context, func()) {
	t.Helper()
	token, secret, err := f.Create(t.Context(), f.admin, n)
	if err != nil {
		t.Fatal(err)
	}
	c, valid, release, err := f.Admit(t.Context(), secret.Reveal())
	if err != nil || c.TokenID != token.ID || valid.Err() != nil {
		t.Fatalf("got %+v, %v", c, err)
	}
	return token, valid, release
}

func wantEnd(t *testing.T, valid context.Context) {
	t.Helper()
	<-valid.Done()
	if err := context.Cause(valid); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("it ended for %v, want Unauthenticated", err)
	}
}

func TestWhatATokenHoldsEndsWithIt(t *testing.T) {
	f := newFixture(t)
	one, first, release := f.admit(t, bearer.NewToken{Name: "one"})
	two, second, releaseTwo := f.admit(t, bearer.NewToken{Name: "two"})
	defer releaseTwo()
	if err := f.Delete(t.Context(), f.admin, "", "no such token"); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	if first.Err() != nil || second.Err() != nil {
		t.Error("a deletion that failed ended them")
	}
	if err := f.Delete(t.Context(), f.admin, one.Project, one.Name); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, first)
	release()
	release() // twice is fine
	if second.Err() != nil {
		t.Error("the other token's ended, too")
	}
	if err := f.Delete(t.Context(), f.admin, "", two.ID); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, second)
	if _, _, _, err := f.Admit(t.Context(), "spt_none"); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("got %v", err)
	}
	c, valid, release, err := f.Admit(t.Context(), adminToken)
	if err != nil || c.TokenID != "" || valid.Done() != nil {
		t.Errorf("the admin token: %+v, %v, it ends: %t", c, err, valid.Done() != nil)
	}
	release()
}

func TestATokenThatIsDeletedWhileItIsAdmitted(t *testing.T) {
	f := newFixture(t)
	for range 200 {
		token, secret, err := f.Create(t.Context(), f.admin, bearer.NewToken{Name: "raced"})
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() { gone <- f.Delete(context.WithoutCancel(t.Context()), f.admin, "", token.ID) }()
		_, valid, release, err := f.Admit(t.Context(), secret.Reveal())
		if derr := <-gone; derr != nil {
			t.Fatal(derr)
		}
		if err == nil {
			wantEnd(t, valid) // and does not hang
			release()
		}
	}
}

func TestAnExpiryEndsWhatATokenHolds(t *testing.T) {
	f := newFixture(t)
	synctest.Test(t, func(t *testing.T) {
		// The store's clock is the fixture's; timers run by the bubble's.
		begin := f.clock.Now()
		_, valid, release := f.admit(t, bearer.NewToken{Name: "short", ExpiresAt: begin.Add(time.Hour)})
		defer release()
		time.Sleep(time.Hour + time.Second) // the host's clock was set back in between
		synctest.Wait()
		if valid.Err() != nil {
			t.Fatal("it ended before the time that the token names")
		}
		f.clock.pass(time.Hour)
		<-valid.Done()
		wantEnd(t, valid)
	})
}
