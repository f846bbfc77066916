// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// benchStore makes a store with a layer of n files of 100 bytes, 1,000 to a directory.
func benchStore(b *testing.B, kind Kind, n int) (*Store, *Layer) {
	b.Helper()
	s := mustOpen(b, Options{Dir: filepath.Join(b.TempDir(), "store"), Kind: kind, SizeBytes: 16 << 30})
	l := mustCreate(b, s, "benchlayer", 0)
	data := []byte(strings.Repeat("x", 100))
	for i := range n {
		dir := at(l.Fd(), fmt.Sprintf("upper/d%d", i/1000))
		if i%1000 == 0 {
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(fmt.Sprintf("%s/f%d", dir, i), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s, l
}

func report(b *testing.B, name string, d []time.Duration) {
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Microseconds())/1000, name+"-ms")
	b.ReportMetric(float64(d[len(d)*95/100].Microseconds())/1000, name+"-p95-ms")
}

// BenchmarkSnapshot reports the medians of a snapshot of a quiet layer with one changed file, of
// a copy and of an exchange, by the number of files. A million files take minutes to
// make, and are made with SANDPIT_SOAK=1 only. Run it with -benchtime=50x.
func BenchmarkSnapshot(b *testing.B) {
	needLoop(b)
	sizes := []int{10, 10_000}
	if os.Getenv("SANDPIT_SOAK") != "" {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, l := benchStore(b, Loop, n)
			took := map[string][]time.Duration{}
			timed := func(name string, f func() error) {
				start := time.Now()
				err := f()
				took[name] = append(took[name], time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
			}
			for i := range b.N {
				snapshot, copied := fmt.Sprintf("snap%08d", i), fmt.Sprintf("copy%08d", i)
				if err := os.WriteFile(at(l.Fd(), "upper/changed"), []byte(snapshot), 0o644); err != nil {
					b.Fatal(err)
				}
				timed("sync", func() error { return s.Sync(b.Context()) })
				timed("snapshot", func() error { _, err := s.Snapshot(b.Context(), "benchlayer", snapshot); return err })
				timed("copy", func() error {
					c, err := s.CreateFrom(b.Context(), copied, snapshot, 1<<30)
					if err != nil {
						return err
					}
					return c.Close()
				})
				timed("exchange", func() error { return s.Exchange(b.Context(), copied, snapshot, 1<<30, atOnce) })
				timed("restart", func() error { return s.Exchange(b.Context(), copied, "", 1<<30, atOnce) })
				if err := errors.Join(s.Remove(copied), s.RemoveSnapshot(snapshot), s.trash.drain()); err != nil {
					b.Fatal(err)
				}
			}
			for name, d := range took {
				report(b, name, d)
			}
		})
	}
}

// BenchmarkCopies makes 100 copies of one snapshot at once, and 100 snapshots of those.
func BenchmarkCopies(b *testing.B) {
	needLoop(b)
	s, _ := benchStore(b, Loop, 10_000)
	mustSnapshot(b, s, "benchlayer", "benchsnapshot")
	var copies, snapshots []time.Duration
	for range b.N {
		all := func(f func(i int) error) time.Duration {
			var wg sync.WaitGroup
			start := time.Now()
			for i := range 100 {
				wg.Go(func() {
					if err := f(i); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			return time.Since(start)
		}
		copies = append(copies, all(func(i int) error {
			c, err := s.CreateFrom(b.Context(), fmt.Sprintf("copy%08d", i), "benchsnapshot", 1<<30)
			if err != nil {
				return err
			}
			return c.Close()
		}))
		snapshots = append(snapshots, all(func(i int) error {
			_, err := s.Snapshot(b.Context(), fmt.Sprintf("copy%08d", i), fmt.Sprintf("snap%08d", i))
			return err
		}))
		for i := range 100 {
			if err := errors.Join(s.Remove(fmt.Sprintf("copy%08d", i)), s.RemoveSnapshot(fmt.Sprintf("snap%08d", i))); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.trash.drain(); err != nil {
			b.Fatal(err)
		}
	}
	report(b, "100copies", copies)
	report(b, "100snapshots", snapshots)
}

// BenchmarkDiff compares a layer of 10,000 files, of which one changed, with its snapshot.
func BenchmarkDiff(b *testing.B) {
	needLoop(b)
	s, l := benchStore(b, Loop, 10_000)
	time.Sleep(2 * time.Second) // what changed within a second of the snapshot is read
	mustSnapshot(b, s, "benchlayer", "benchsnapshot")
	if err := os.WriteFile(at(l.Fd(), "upper/changed"), nil, 0o644); err != nil {
		b.Fatal(err)
	}
	image, err := os.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer image.Close()
	var took []time.Duration
	for range b.N {
		start := time.Now()
		got, err := s.Diff(b.Context(), image, "benchsnapshot", "benchlayer", 100)
		took = append(took, time.Since(start))
		if err != nil || got.Total != 1 {
			b.Fatalf("%d changes, %v; want 1", got.Total, err)
		}
	}
	report(b, "diff", took)
}
