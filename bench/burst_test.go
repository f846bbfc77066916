// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTogether(t *testing.T) {
	t.Run("AtOnceNobodyWaitsForAnother", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			got := together(t.Context(), 100, 0, func(int) error { time.Sleep(time.Second); return nil })
			if took := time.Since(began); took != time.Second || len(got.ok) != 100 {
				t.Errorf("took %v for %d runs, want 1s for 100", took, len(got.ok))
			}
		})
	})
	t.Run("StaggeredOneBeginsAfterTheOther", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			at := make([]time.Duration, 3)
			together(t.Context(), 3, 50*time.Millisecond, func(i int) error { at[i] = time.Since(began); return nil })
			if diff := cmp.Diff([]time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond}, at); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("FailuresAreCountedAndTheFirstIsKept", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			broken := errors.New("broken")
			got := together(t.Context(), 3, time.Second, func(i int) error {
				if i > 0 {
					return broken
				}
				return nil
			})
			if f := got.figures(); f.N != 3 || f.OK != 1 || got.failure != broken {
				t.Errorf("got %+v, %v; want 1 of 3 and %v", f, got.failure, broken)
			}
		})
	})
	t.Run("AfterAnInterruptNoneBegins", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
			defer cancel()
			var began atomic.Int32
			together(ctx, 100, 50*time.Millisecond, func(int) error { began.Add(1); return nil })
			if n := began.Load(); n != 3 {
				t.Errorf("%d began, want 3", n)
			}
		})
	})
}

func TestInTurnNeitherSideAlwaysComesSecond(t *testing.T) {
	var order []int
	if err := inTurn(t.Context(), 3, func(_, side int) error { order = append(order, side); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 1, 1, 0, 0, 1}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}
