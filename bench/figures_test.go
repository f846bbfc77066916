// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFigures(t *testing.T) {
	t.Run("AreRanksOfWhatWorked", func(t *testing.T) {
		var s series
		for i := 100; i > 0; i-- {
			s.add(time.Duration(i)*time.Millisecond, nil)
		}
		s.add(time.Hour, errors.New("failed"))
		want := &Figures{N: 101, OK: 100, Success: 100.0 / 101, Min: 1, P50: 50, P95: 95, P99: 99}
		if diff := cmp.Diff(want, s.figures()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("OfNothingAreNone", func(t *testing.T) {
		if got := new(series).figures(); got != nil {
			t.Errorf("got %v, want nil", got)
		}
	})
	t.Run("OfFailuresAloneHaveNoTime", func(t *testing.T) {
		var s series
		s.add(time.Second, errors.New("failed"))
		if diff := cmp.Diff(&Figures{N: 1}, s.figures()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMedian(t *testing.T) {
	if got := median(nil); got != nil {
		t.Errorf("of nothing: got %v, want nil", *got)
	}
	if got := median([]float64{9, 1, 5}); got == nil || *got != 5 {
		t.Errorf("got %v, want 5", got)
	}
}

func TestMachineSince(t *testing.T) {
	m := Machine{Cores: 2}
	start := time.Unix(0, 0)
	m.since(usage{at: start}, usage{at: start.Add(10 * time.Second), all: 15 * time.Second, own: 5 * time.Second, stolen: time.Second})
	if m.Others != 1 || m.Stolen != 0.1 || !m.busy() {
		t.Errorf("got others %v, stolen %v, busy %v; want 1, 0.1, true", m.Others, m.Stolen, m.busy())
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"-o", "xml"}, {"-peers", "nobody"}, {"-idle", "-1"}, {"-processes", "5"}, {"more"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
	o, err := parse([]string{"-peers", "runc, runc,"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"runc"}, o.peers); diff != "" {
		t.Error(diff)
	}
}
