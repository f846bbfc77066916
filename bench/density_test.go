// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUpTo(t *testing.T) {
	for most, want := range map[int][]int{1: {1}, 10: {1, 10}, 99: {1, 10, 99}, 5000: {1, 10, 100, 1000, 5000}} {
		if diff := cmp.Diff(want, upTo(densities, most)); diff != "" {
			t.Errorf("up to %d: %s", most, diff)
		}
	}
}

func TestMaxOpenFiles(t *testing.T) {
	const head = "Limit                     Soft Limit           Hard Limit           Units     \n"
	for limits, want := range map[string]int{
		head + "Max open files            20000                524288               files     \n": 20000,
		head + "Max open files            unlimited            unlimited            files     \n": math.MaxInt,
		head + "Max processes             96000                96000                processes \n": 0,
		"":                  0,
		"Max open files   ": 0,
	} {
		if got := maxOpenFiles(limits); got != want {
			t.Errorf("%q: got %d, want %d", limits, got, want)
		}
	}
}
