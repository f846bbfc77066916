// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"math"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/internal/ratelimit"
)

// Rates are the most requests in a second; zero: any number. As many as in two seconds may come at
// once.
type Rates struct {
	Token   float64 // by one token
	Project float64 // by all tokens of a project together
}

// ratedKeys is how many tokens, and projects, are counted; who is pushed out begins anew.
const ratedKeys = 16384

// rates counts requests. A nil field counts nothing.
type rates struct {
	Rates
	tokens, projects *ratelimit.Limiter[string]
}

func newRates(r Rates) rates {
	limiter := func(perSecond float64) *ratelimit.Limiter[string] {
		if perSecond <= 0 {
			return nil
		}
		return ratelimit.New[string](perSecond, max(1, int(math.Ceil(2*perSecond))), ratedKeys)
	}
	return rates{r, limiter(r.Token), limiter(r.Project)}
}

// admit counts a request that begins. What goes on already is not asked again. The server's own
// administrator is never refused: who set the limit has to be able to lift it.
func (l *rates) admit(c access.Caller, now time.Time) error {
	if l.tokens == nil && l.projects == nil || c.May(access.ServerAdmin) {
		return nil
	}
	if l.tokens != nil {
		if wait := l.tokens.Take(c.Project+"\n"+c.TokenID, now); wait > 0 {
			return tooMany(wait, "the token %q may begin %s", c.Actor, perTime(l.Token))
		}
	}
	if l.projects != nil {
		if wait := l.projects.Take(c.Project, now); wait > 0 {
			return tooMany(wait, "the tokens of the project %s together may begin %s", c.Project, perTime(l.Project))
		}
	}
	return nil
}

// perTime says a rate in words.
func perTime(perSecond float64) string {
	n, unit := perSecond, "second"
	switch {
	case n < 1.0/60:
		n, unit = n*3600, "hour"
	case n < 1:
		n, unit = n*60, "minute"
	}
	return fmt.Sprintf("%g requests per %s", math.Round(n*100)/100, unit)
}

func tooMany(wait time.Duration, format string, args ...any) error {
	e := fault.New(fault.Exhausted, format, args...).
		WithRemedy("wait as Retry-After says, and send fewer; the operator sets limits.requests")
	e.Retry = wait
	return e
}
