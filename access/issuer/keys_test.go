// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package issuer_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"sandpit.dev/fault"
)

func TestKeysAreRotated(t *testing.T) {
	one, two := newKey(t, "one", jose.ES256), newKey(t, "two", jose.ES256)
	s := newServer(t, one.public)
	set := s.open(s.config(), time.Nanosecond)
	old := one.sign(t, s.claims(nil), nil)
	if _, err := set.Check(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.keys = []jose.JSONWebKey{two.public} })
	if _, err := set.Check(t.Context(), two.sign(t, s.claims(nil), nil)); err != nil {
		t.Errorf("a new key: %v", err)
	}
	_, err := set.Check(t.Context(), old)
	want(t, "a key that was taken back", err, fault.Unauthenticated)
}

func TestUnknownKeysAreAskedForSeldom(t *testing.T) {
	k := newKey(t, "one", jose.ES256)
	s := newServer(t, k.public)
	set := s.open(s.config(), time.Hour)
	good := k.sign(t, s.claims(nil), nil)
	if _, err := set.Check(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			_, err := set.Check(t.Context(), k.sign(t, s.claims(nil), map[jose.HeaderKey]any{"kid": fmt.Sprint("made-up-", n)}))
			want(t, "a key that is made up", err, fault.Unauthenticated)
		})
	}
	wg.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("the keys were asked for %d times, want once", n)
	}
	if _, err := set.Check(t.Context(), good); err != nil {
		t.Error(err)
	}
}

func TestAnIssuerThatIsAway(t *testing.T) {
	k, next := newKey(t, "one", jose.ES256), newKey(t, "two", jose.ES256)
	t.Run("FromTheStart", func(t *testing.T) {
		s := newServer(t, k.public)
		s.down = true
		set := s.open(s.config(), time.Nanosecond)
		_, err := set.Check(t.Context(), k.sign(t, s.claims(nil), nil))
		want(t, "Check", err, fault.Unavailable)
		if fault.As(err).Retry <= 0 {
			t.Error("it does not say when to ask again")
		}
		s.set(func() { s.down = false })
		if _, err := set.Check(t.Context(), k.sign(t, s.claims(nil), nil)); err != nil {
			t.Errorf("when it is back: %v", err)
		}
	})
	t.Run("Later", func(t *testing.T) {
		s := newServer(t, k.public)
		set := s.open(s.config(), time.Nanosecond)
		good := k.sign(t, s.claims(nil), nil)
		if _, err := set.Check(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.down = true })
		_, err := set.Check(t.Context(), next.sign(t, s.claims(nil), nil))
		want(t, "a key that is not known", err, fault.Unavailable)
		if _, err := set.Check(t.Context(), good); err != nil {
			t.Errorf("a key that is known: %v", err)
		}
		_, err = set.Check(t.Context(), next.sign(t, s.claims(nil), map[jose.HeaderKey]any{"kid": "one"}))
		want(t, "another's signature", err, fault.Unauthenticated)
	})
	t.Run("AndDoesNotAnswer", func(t *testing.T) {
		s := newServer(t, k.public)
		set := s.open(s.config(), time.Nanosecond)
		good := k.sign(t, s.claims(nil), nil)
		if _, err := set.Check(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		gate := make(chan struct{})
		s.set(func() { s.gate = gate })
		waiting := make(chan error, 1)
		go func() {
			_, err := set.Check(t.Context(), next.sign(t, s.claims(nil), nil))
			waiting <- err
		}()
		for range 100 { // nobody waits for the other's key
			if _, err := set.Check(t.Context(), good); err != nil {
				t.Error(err)
			}
		}
		s.set(func() { s.keys = append(s.keys, next.public); s.gate = nil })
		close(gate)
		if err := <-waiting; err != nil && !fault.Is(err, fault.Unauthenticated) { // the answer may have been under way
			t.Error(err)
		}
	})
}

func TestAnswersOfIssuersAreBounded(t *testing.T) {
	k := newKey(t, "one", jose.ES256)
	for name, change := range map[string]func(s *server, jwks *string){
		"ARedirect":    func(s *server, jwks *string) { *jwks = s.URL + "/elsewhere" },
		"ALargeAnswer": func(s *server, jwks *string) { *jwks = s.URL + "/large" },
		"NoKeys":       func(s *server, _ *string) { s.keys = nil },
		"TooManyKeys":  func(s *server, _ *string) { s.keys = manyKeys(k, 101) },
		"AnothersData": func(s *server, _ *string) {
			s.meta = object{"issuer": "https://evil.example", "jwks_uri": s.URL + "/keys"}
		},
		"KeysByPlainHTTP": func(s *server, _ *string) {
			s.meta = object{"issuer": s.url(), "jwks_uri": "http://" + s.URL[8:] + "/keys"}
		},
		"KeysInAFile": func(s *server, _ *string) { s.meta = object{"issuer": s.url(), "jwks_uri": "file:///etc/passwd"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, k.public)
			c := s.config()
			change(s, &c.JWKS)
			_, err := s.open(c, 0).Check(t.Context(), k.sign(t, s.claims(nil), nil))
			want(t, "Check", err, fault.Unavailable)
		})
	}
	t.Run("APlaceThatIsConfigured", func(t *testing.T) {
		s := newServer(t, k.public)
		c := s.config()
		c.JWKS = s.URL + "/keys"
		s.meta = object{"issuer": "https://evil.example"}
		if _, err := s.open(c, 0).Check(t.Context(), k.sign(t, s.claims(nil), nil)); err != nil {
			t.Error(err)
		}
	})
	t.Run("ACertificateOfNobody", func(t *testing.T) {
		s := newServer(t, k.public)
		set := s.openWith(s.config(), nil)
		_, err := set.Check(t.Context(), k.sign(t, s.claims(nil), nil))
		want(t, "Check", err, fault.Unavailable)
	})
}

func manyKeys(k key, n int) (all []jose.JSONWebKey) {
	for i := range n {
		one := k.public
		one.KeyID = fmt.Sprint("key-", i)
		all = append(all, one)
	}
	return append(all, k.public)
}
