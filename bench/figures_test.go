// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"runtime"
	"strings"
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
	for _, test := range []struct {
		values []float64
		want   float64
	}{{[]float64{9, 1, 5}, 5}, {[]float64{12.3456}, 12.35}, {[]float64{.0912345}, .0912}, {[]float64{-.0912345}, -.0912}} {
		if got := median(test.values); got == nil || *got != test.want {
			t.Errorf("of %v: want %v", test.values, test.want)
		}
	}
}

func TestMachineSince(t *testing.T) {
	if got := describe(t.TempDir()); runtime.GOARCH == "amd64" && got.CPUID <= 0 {
		t.Errorf("CPUID takes no time: %+v", got)
	}
	m := Machine{Cores: 2}
	start := time.Unix(0, 0)
	m.since(usage{at: start}, usage{at: start.Add(10 * time.Second), all: 15 * time.Second, own: 5 * time.Second, stolen: time.Second})
	if m.Others != 1 || m.Stolen != 0.1 || !m.Busy() {
		t.Errorf("got others %v, stolen %v, busy %v; want 1, 0.1, true", m.Others, m.Stolen, m.Busy())
	}
}

func TestOptionsCheck(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"--pairs 0":            func(o *Options) { o.Pairs = 0 },
		"--idle -1":            func(o *Options) { o.Idle = -1 },
		"--processes 5":        func(o *Options) { o.Processes = 5 },
		"--prewarmed 257":      func(o *Options) { o.Prewarmed = 257 },
		"--sustain -1":         func(o *Options) { o.Sustain = -1 },
		"--density 100001":     func(o *Options) { o.Density = 100_001 },
		"--records 10000001":   func(o *Options) { o.Records = 10_000_001 },
		"--registered 1000001": func(o *Options) { o.Registered = 1_000_001 },
		`--peers: "nobody"`:    func(o *Options) { o.Peers = []string{"runc", "nobody"} },
		`--parts: "nothing"`:   func(o *Options) { o.Parts = []string{"nothing"} },
	} {
		o := Defaults()
		if spoil(&o); o.Check() == nil || !strings.Contains(o.Check().Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, o.Check())
		}
	}
	o := Defaults()
	if o.Peers, o.Parts = []string{"runc"}, []string{"exec"}; o.Check() != nil {
		t.Error(o.Check())
	}
}

func TestReportsDoNotNameThePrivateDirectory(t *testing.T) {
	r := &Report{Missing: map[string]string{"runc": "open /data/x/runc: gone"}, Failures: []string{"a: /data/x/a, /data/x/b"}}
	r.conceal("/data/x")
	if r.Missing["runc"] != "open DIR/runc: gone" || r.Failures[0] != "a: DIR/a, DIR/b" {
		t.Errorf("got %q and %q", r.Missing, r.Failures)
	}
}
