// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"testing"
	"time"
)

// steady is a side that always takes as long.
func steady(name string, took time.Duration) side {
	return side{name, func(context.Context) (time.Duration, time.Duration, error) { return took, 0, nil }}
}

func TestCompare(t *testing.T) {
	none := func() error { return nil }

	t.Run("GivesRatiosOfPairsThatWorked", func(t *testing.T) {
		s := &session{out: &Report{}}
		runs := 0
		flaky := side{"runc", func(context.Context) (time.Duration, time.Duration, error) {
			if runs++; runs%2 == 0 {
				return time.Hour, 0, errors.New("failed")
			}
			return 30 * time.Millisecond, 0, nil
		}}
		c, _, err := s.compare(t.Context(), 10, []side{steady("sandpit", 10*time.Millisecond), flaky}, none)
		if err != nil {
			t.Fatal(err)
		}
		if f := c.Figures["runc"]; f.N != 10 || f.OK != 5 {
			t.Errorf("runc: %d of %d worked, want 5 of 10", f.OK, f.N)
		}
		if r := c.Ratios["runc"]; r == nil || *r != 3 {
			t.Errorf("ratio is %v, want 3", r)
		}
		if len(s.out.Failures) != 1 {
			t.Errorf("the report tells %q, want the one failure", s.out.Failures)
		}
		if f, there := c.Figures["docker"]; f != nil || !there {
			t.Errorf("a peer that is not there has %v, named %v; want nil, named", f, there)
		}
	})

	t.Run("LetsNobodyTakeMoreThanItsShare", func(t *testing.T) {
		for _, share := range []struct {
			of   time.Duration
			runs int
		}{{0, 10}, {time.Hour, 10}, {1, 1}} {
			s := &session{out: &Report{}, share: share.of}
			counted := 0
			c, _, err := s.compare(t.Context(), 10, []side{steady("sandpit", 1), steady("runc", 2)}, func() error {
				counted++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for name, f := range map[string]*Figures{"sandpit": c.Figures["sandpit"], "runc": c.Figures["runc"]} {
				if f.N != share.runs {
					t.Errorf("with a share of %v %s has %d runs, want %d", share.of, name, f.N, share.runs)
				}
			}
			if counted != 1 {
				t.Errorf("began to count %d times, want 1", counted)
			}
		}
	})

	t.Run("EndsWithAnInterrupt", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &session{out: &Report{}}
		runs := 0
		_, _, err := s.compare(ctx, 10, []side{{"sandpit", func(context.Context) (time.Duration, time.Duration, error) {
			if runs++; runs == 7 {
				cancel()
			}
			return 1, 0, nil
		}}}, none)
		if !errors.Is(err, context.Canceled) || runs != 7 {
			t.Errorf("got %v after %d runs, want an end by the interrupt after 7", err, runs)
		}
	})
}
