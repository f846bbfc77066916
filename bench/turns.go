// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"
)

// Compared is one thing as several do it in turn.
type Compared struct {
	What  string `json:"what"`
	Sides []Side `json:"sides"`
}

// Side is one of those who do it.
type Side struct {
	Who     string   `json:"who"`
	Figures *Figures `json:"figures"`
	// Ratio is how many times as long it took as the first side did in the same round; nil of the first side.
	Ratio *Spread `json:"ratio"`
}

// Of returns the side of a name; nil: there is none.
func (c Compared) Of(who string) *Side {
	for i := range c.Sides {
		if c.Sides[i].Who == who {
			return &c.Sides[i]
		}
	}
	return nil
}

func (c Compared) rows(row func(name string, f *Figures)) {
	for _, side := range c.Sides {
		row(c.What+", "+side.Who, side.Figures)
	}
}

// turn is one of the sides of a comparison that is still to be made.
type turn struct {
	who string
	run func(ctx context.Context) (time.Duration, error)
}

// turns has each side do it n times, in turn. The order changes from round to round, so that nobody
// always runs in another's wake, and the first warm rounds do not count. A side of which no
// run worked is an error.
func (s *session) turns(ctx context.Context, what string, n, warm int, sides []turn) (Compared, error) {
	times := make([]series, len(sides))
	ratios := make([][]float64, len(sides))
	failures := make([]error, len(sides))
	for i := range n + warm {
		took := make([]time.Duration, len(sides))
		worked := make([]bool, len(sides))
		for k := range sides {
			at := (i + k) % len(sides)
			d, err := sides[at].run(ctx)
			if ctx.Err() != nil {
				return Compared{}, ctx.Err()
			}
			took[at], worked[at] = d, err == nil && d > 0
			s.failed(what+", "+sides[at].who, err)
			failures[at] = firstOf(failures[at], err)
			if i >= warm {
				times[at].add(d, err)
			}
		}
		for at := range sides {
			if i >= warm && worked[0] && worked[at] {
				ratios[at] = append(ratios[at], float64(took[at])/float64(took[0]))
			}
		}
	}
	c := Compared{What: what}
	for at, side := range sides {
		if len(times[at].ok) == 0 {
			return c, fmt.Errorf("%s, %s: no run worked: %w", what, side.who, failures[at])
		}
		one := Side{Who: side.who, Figures: times[at].figures()}
		if at > 0 {
			one.Ratio = spread(ratios[at])
		}
		c.Sides = append(c.Sides, one)
	}
	return c, nil
}
