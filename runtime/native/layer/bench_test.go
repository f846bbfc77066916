// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkCreateRemove reports the medians of the two calls; run it with
// -benchtime=200x for a figure that can be quoted.
func BenchmarkCreateRemove(b *testing.B) {
	needLoop(b)
	for _, kind := range []Kind{Plain, Loop, Btrfs} {
		b.Run(string(kind), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "store")
			if kind == Btrfs {
				dir = btrfsDir(b)
			}
			s := mustOpen(b, Options{Dir: dir, Kind: kind})
			var create, fresh, remove []time.Duration
			for i := range b.N {
				id := fmt.Sprintf("bench%08d", i)
				start := time.Now()
				l, err := s.Create(id, 64*mib)
				create = append(create, time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
				l.fresh.Store(false)
				start = time.Now()
				if err := l.FreshWork(); err != nil {
					b.Fatal(err)
				}
				fresh = append(fresh, time.Since(start))
				l.Close()
			}
			for i := range b.N {
				start := time.Now()
				if err := s.Remove(fmt.Sprintf("bench%08d", i)); err != nil {
					b.Fatal(err)
				}
				remove = append(remove, time.Since(start))
			}
			for name, d := range map[string][]time.Duration{"create": create, "freshwork": fresh, "remove": remove} {
				slices.Sort(d)
				b.ReportMetric(float64(d[len(d)/2].Nanoseconds())/1000, name+"-µs")
				b.ReportMetric(float64(d[len(d)*95/100].Nanoseconds())/1000, name+"-p95-µs")
			}
		})
	}
}
