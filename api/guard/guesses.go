// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/netip"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/ratelimit"
)

// Bounds of tokens that are not valid, by the address that they come from.
const (
	guessesBurst     = 20
	guessesPerSecond = 1
	guessesAddresses = 4096 // some 300 bytes each
)

func newGuesses() *ratelimit.Limiter[netip.Prefix] {
	return ratelimit.New[netip.Prefix](guessesPerSecond, guessesBurst, guessesAddresses)
}

// Guessed counts a token that was not valid, and returns the error to answer with: err, or for an
// address with too many that it shall wait. [Guard.Wrap] calls it, and so do handlers that check
// tokens themselves. Only who had no valid token comes here: many callers may share one address, and
// none of them pays for another's guesses.
func (g *Guard) Guessed(w http.ResponseWriter, r *http.Request, err error) error {
	from := networkOf(r)
	wait := g.guesses.Take(from, time.Now())
	if wait == 0 {
		return err
	}
	e := fault.Wrap(fault.Exhausted, err, "too many requests from %s had a token that is not valid", addressText(from)).
		WithRemedy("correct the token and wait as Retry-After says; a valid token is not kept waiting")
	e.Retry = wait
	w.Header().Set("Connection", "close") // the next guess has to connect
	return e
}

// networkOf is what counts as one address: all that a host of IPv6 chooses from. It is invalid for
// who comes by a unix socket.
func networkOf(r *http.Request) netip.Prefix {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	return network(a.Addr())
}

func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

func addressText(p netip.Prefix) string {
	switch {
	case !p.IsValid():
		return "this machine"
	case p.IsSingleIP():
		return p.Addr().String()
	}
	return p.String()
}
