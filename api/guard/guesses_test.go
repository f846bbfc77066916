// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

func TestGuessesAreSlowedByAddress(t *testing.T) {
	g, err := New(Options{Tokens: right{}})
	if err != nil {
		t.Fatal(err)
	}
	h := g.Wrap("rest", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	ask := func(from string, token string) *http.Response {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8080/", nil)
		r.RemoteAddr = from
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	t.Run("AFloodIsToldToWaitAndAValidTokenNever", func(t *testing.T) {
		told := 0
		for n := range 500 {
			resp := ask(fmt.Sprintf("127.0.0.1:%d", 1000+n), fmt.Sprintf("guess-%d", n))
			switch resp.StatusCode {
			case http.StatusUnauthorized:
			case http.StatusTooManyRequests:
				told++
				if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 || resp.Header.Get("Connection") != "close" {
					t.Fatalf("got %v", resp.Header)
				}
			default:
				t.Fatalf("a guess got %s", resp.Status)
			}
			if n < guessesBurst && resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("guess %d got %s already", n, resp.Status)
			}
			if got := ask("127.0.0.1:9", "right"); got.StatusCode != http.StatusTeapot {
				t.Fatalf("after %d guesses the valid token got %s", n+1, got.Status)
			}
		}
		if told == 0 {
			t.Error("500 guesses were let through")
		}
	})
	t.Run("AnotherAddressIsNot", func(t *testing.T) {
		if got := ask("127.0.0.2:9", "guess"); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("got %s", got.Status)
		}
	})
	t.Run("ARequestWithoutATokenIsNoGuess", func(t *testing.T) {
		for range 10 * guessesBurst {
			if got := ask("127.0.0.3:9", ""); got.StatusCode != http.StatusUnauthorized {
				t.Fatalf("got %s", got.Status)
			}
		}
	})
	t.Run("AHostOfIPv6IsOneAddress", func(t *testing.T) {
		told := false
		for n := range 10 * guessesBurst {
			told = told || ask(fmt.Sprintf("[2001:db8::%x]:9", n+1), "guess").StatusCode == http.StatusTooManyRequests
		}
		if !told {
			t.Error("each address of one network has guesses of its own")
		}
		if got := ask("[2001:db8:0:1::1]:9", "guess"); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("another network got %s", got.Status)
		}
	})
	t.Run("ManyAddressesTakeBoundedMemory", func(t *testing.T) {
		for n := range 3 * guessesAddresses {
			ask(fmt.Sprintf("10.%d.%d.%d:9", n>>16, n>>8&255, n&255), "guess")
		}
		if got := g.guesses.Len(); got != guessesAddresses {
			t.Errorf("it keeps %d addresses, want %d", got, guessesAddresses)
		}
	})
}
