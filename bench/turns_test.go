// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// given is a side that takes what it is given, run by run.
func given(who string, seconds ...int) turn {
	return turn{who, func(context.Context) (time.Duration, error) {
		now := seconds[0]
		seconds = seconds[1:]
		if now < 0 {
			return 0, errors.New("it broke")
		}
		return time.Duration(now) * time.Second, nil
	}}
}

func TestTurns(t *testing.T) {
	fresh := func() *session { return &session{out: &Report{}} }
	t.Run("RatiosAreOfOneRoundAndWarmRoundsDoNotCount", func(t *testing.T) {
		c, err := fresh().turns(t.Context(), "work", 3, 1, []turn{given("a", 9, 1, 2, 4), given("b", 1, 3, 4, 4)})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Of("a"); got.Ratio != nil || got.Figures.N != 3 || got.Figures.P50 != 2000 {
			t.Errorf("the first side is %+v, %+v", got, got.Figures)
		}
		if diff := cmp.Diff(&Spread{N: 3, Low: 1, Median: 2, High: 3}, c.Of("b").Ratio); diff != "" {
			t.Error(diff)
		}
		if c.Of("c") != nil {
			t.Error("there is a side that nobody measured")
		}
	})
	t.Run("ARunThatFailsIsCountedAndHasNoRatio", func(t *testing.T) {
		s := fresh()
		c, err := s.turns(t.Context(), "work", 3, 0, []turn{given("a", 1, -1, 1), given("b", 2, 2, -1)})
		if err != nil {
			t.Fatal(err)
		}
		if b := c.Of("b"); b.Figures.OK != 2 || b.Figures.N != 3 || b.Ratio.N != 1 {
			t.Errorf("got %+v and %+v", b.Figures, b.Ratio)
		}
		if diff := cmp.Diff([]string{"work, a: it broke", "work, b: it broke"}, s.out.Failures); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("ASideThatNeverWorksIsAnError", func(t *testing.T) {
		_, err := fresh().turns(t.Context(), "work", 2, 0, []turn{given("a", 1, 1), given("b", -1, -1)})
		if err == nil || !strings.Contains(err.Error(), "b: no run worked: it broke") {
			t.Errorf("got %v", err)
		}
	})
}

// Sides are those of work as well, by their own clocks.
func TestCompareInside(t *testing.T) {
	var r DockerInside
	r.Rounds = 2
	sided := func(seconds ...float64) worker {
		run := clock(seconds...)
		return func(ctx context.Context, args ...string) (string, error) {
			if args[0] == "lacks" {
				return "npm\n", nil
			}
			return run(ctx, args...)
		}
	}
	s := &session{out: &Report{}}
	if err := s.compareInside(t.Context(), []string{Plain, Native}, []worker{sided(9, 1, 1), sided(9, 3, 3)}, &r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"npm"}, r.Lacks); diff != "" {
		t.Error(diff)
	}
	if got := r.Work[0]; got.What != "cpu" || got.Of(Native).Ratio.Median != 3 || got.Of(Plain).Figures.P50 != 1000 {
		t.Errorf("got %+v", got)
	}
}

// A part that fails half way is told as missing, and none of its figures are in the report.
func TestAPartThatFailsHasNoFigures(t *testing.T) {
	if r, err := whole(&DockerAlive{Alive: 7}, errors.New("it broke")); r != nil || err == nil {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := whole(&DockerAlive{Alive: 7}, nil); r == nil || err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}
