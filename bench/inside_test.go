// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpread(t *testing.T) {
	if got := spread(nil); got != nil {
		t.Errorf("of nothing: got %v, want nil", got)
	}
	want := &Spread{N: 4, Low: 1, Median: 2, High: 3}
	if diff := cmp.Diff(want, spread([]float64{4, 1, 3, 2})); diff != "" {
		t.Error(diff)
	}
	if got := spread([]float64{1.01995}).String(); got != "1.020 (middle half 1.020 to 1.020)" {
		t.Errorf("got %q", got)
	}
}

// clock is a worker that takes what it is given, run by run.
func clock(seconds ...float64) worker {
	return func(_ context.Context, args ...string) (string, error) {
		if args[0] != "run" {
			return "cpu", nil
		}
		now := seconds[0]
		seconds = seconds[1:]
		return fmt.Sprintf("%f\n", now), nil
	}
}

func TestCompareWork(t *testing.T) {
	t.Run("RatiosAreOfNeighboursAndTheFirstRoundDoesNotCount", func(t *testing.T) {
		w, err := compareWork(t.Context(), []worker{clock(9, 1.5, 3, 6), clock(9, 1, 1, 2), clock(9, 1.5, 2, 4)}, "cpu", 3)
		if err != nil {
			t.Fatal(err)
		}
		got := []float64{w.Sandbox.Median, w.Loop.Median, w.All.Median}
		if diff := cmp.Diff([]float64{1.5, 2, 3}, got); diff != "" || w.Store.N != 3 || w.Inside.Min != 1500 {
			t.Errorf("%s; store ran %d times, inside took %v ms at least", diff, w.Store.N, w.Inside.Min)
		}
	})
	t.Run("WithoutAStoreInsideIsComparedWithTheHost", func(t *testing.T) {
		w, err := compareWork(t.Context(), []worker{clock(1, 3), clock(1, 2)}, "cpu", 1)
		if err != nil || w.Sandbox.Median != 1.5 || w.Store != nil || w.Loop != nil {
			t.Errorf("got %+v, %v; want 1.5 and no store", w, err)
		}
	})
	t.Run("ATimeThatIsNoneIsAnError", func(t *testing.T) {
		for _, said := range []string{"", "fast", "0", "-1"} {
			liar := func(context.Context, ...string) (string, error) { return said, nil }
			if _, err := compareWork(t.Context(), []worker{liar, liar}, "cpu", 1); err == nil || !strings.Contains(err.Error(), "cpu: a program says") {
				t.Errorf("%q: got %v, want an error that says so", said, err)
			}
		}
	})
}
