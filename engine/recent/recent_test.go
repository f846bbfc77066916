// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// clock is a time that a test sets.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

func begin() (*clock, *Log) {
	c := new(clock)
	c.at.Store(time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC).UnixNano())
	return c, New(c.now)
}

func TestAnHourIsCountedByTheMinute(t *testing.T) {
	c, l := begin()
	began := c.now()
	l.Done(Create, "p", 20*time.Millisecond)
	l.Failed(Create, "q", string(fault.Full))
	c.pass(time.Minute)
	for range 3 {
		l.Ended("p", "")
		l.Ran("p", 4*time.Millisecond)
	}
	l.Ended("q", string(sandbox.CauseOOM))
	l.Ended("q", ExitCause)
	l.Failed(Command, "q", "what nobody has heard of")
	l.Refused("p")
	l.Refused("p")

	all, ok := l.Report("")
	if !ok || !all.Since.Equal(began) || all.Creates != 1 || all.Commands != 5 || all.Refused != 2 || len(all.Minutes) != 2 {
		t.Errorf("all: got %+v", all)
	}
	if want := []Failures{{Create, "full", 1}, {Command, OtherCause, 1}, {Command, ExitCause, 1}, {Command, "oom", 1}}; !slices.Equal(all.Failures, want) {
		t.Errorf("got %v, want %v", all.Failures, want)
	}
	if m := all.Minutes[1]; m.Commands != 5 || m.Failures != 3 || m.Creates != 0 || m.Refused != 2 || m.Times[Command].Count != 3 || m.Times[Create].Count != 0 || !m.At.Equal(began.Truncate(time.Minute).Add(time.Minute)) {
		t.Errorf("got %+v", m)
	}
	p, _ := l.Report("p")
	if p.Creates != 1 || p.Commands != 3 || p.Refused != 2 || len(p.Failures) != 0 || p.Times[Command].Count != 3 {
		t.Errorf("p: got %+v", p)
	}
	q, _ := l.Report("q")
	if q.Creates != 0 || q.Commands != 2 || q.Refused != 0 || len(q.Failures) != 4 || q.Times[Create].Count != 0 {
		t.Errorf("q: got %+v", q)
	}
	if none, ok := l.Report("nobody"); !ok || none.Commands != 0 || len(none.Minutes) != 0 {
		t.Errorf("of a project without anything: got %+v, %v", none, ok)
	}

	// The first minute leaves after an hour, the second stays for one more; what comes then has its place.
	c.pass(58 * time.Minute)
	if r, _ := l.Report(""); r.Creates != 1 || r.Commands != 5 {
		t.Errorf("in the 60th minute: got %+v", r)
	}
	c.pass(time.Minute)
	l.Done(Create, "p", time.Second)
	r, _ := l.Report("")
	if r.Creates != 1 || r.Commands != 5 || len(r.Minutes) != 2 || r.Times[Create].Count != 1 || r.Times[Create].P50 < 900*time.Millisecond {
		t.Errorf("in the 61st: got %+v", r)
	}
	if want := c.now().Truncate(time.Minute).Add(-59 * time.Minute); !r.Since.Equal(want) {
		t.Errorf("it is since %v, want %v", r.Since, want)
	}
	c.pass(24 * time.Hour)
	if r, _ := l.Report(""); r.Creates != 0 || len(r.Minutes) != 0 || len(r.Failures) != 0 || r.Times[Create].Count != 0 {
		t.Errorf("a day later: got %+v", r)
	}
	c.pass(-48 * time.Hour) // the host's clock was set
	l.Done(Create, "p", time.Second)
	l.Refused("p")
}

func TestPercentilesAreWithinAnEighth(t *testing.T) {
	for _, most := range []time.Duration{300 * time.Microsecond, 5 * time.Millisecond, time.Second, 10 * time.Minute} {
		c, l := begin()
		r := rand.New(rand.NewPCG(1, uint64(most)))
		var all []time.Duration
		for range 20_000 {
			d := time.Duration(r.Int64N(int64(most)))
			all = append(all, d)
			l.Ran("p", d)
			if r.IntN(1000) == 0 {
				c.pass(time.Minute)
			}
		}
		slices.Sort(all)
		got, _ := l.Report("p")
		for name, pair := range map[string][2]time.Duration{"p50": {got.Times[Command].P50, all[len(all)/2]}, "p95": {got.Times[Command].P95, all[len(all)*95/100]}} {
			if off := (pair[0] - pair[1]).Abs(); off > pair[1]/8+unit {
				t.Errorf("up to %v: %s is %v, and is said to be %v", most, name, pair[1], pair[0])
			}
		}
		if got.Times[Command].Count != 20_000 {
			t.Errorf("got %d", got.Times[Command].Count)
		}
	}
	for _, d := range []time.Duration{-time.Hour, 0, 1, unit, 100 * time.Hour, 1<<63 - 1} {
		if b := bucketOf(d); b < 0 || b >= buckets || b > 0 && d < fromOf(b) {
			t.Errorf("%v is in bucket %d", d, b)
		}
	}
	for b := range buckets {
		if bucketOf(fromOf(b)) != b || b > 0 && bucketOf(fromOf(b)-1) != b-1 {
			t.Errorf("bucket %d does not begin at %v", b, fromOf(b))
		}
	}
}

func TestNothingIsLostWhereManyCount(t *testing.T) {
	c, l := begin()
	var group sync.WaitGroup
	const workers, each = 8, 2000
	for w := range workers {
		group.Go(func() {
			for n := range each {
				project := fmt.Sprint("p", w%3)
				l.Done(Create, project, time.Duration(n)*time.Microsecond)
				l.Ended(project, ExitCause)
				l.Refused(project)
				if n%100 == 0 && w == 0 {
					c.pass(time.Minute) // 20 in all
				}
				if n%500 == 0 {
					l.Report(project)
				}
			}
		})
	}
	group.Wait()
	sum := int64(0)
	for _, project := range []string{"p0", "p1", "p2"} {
		r, _ := l.Report(project)
		sum += r.Creates
	}
	all, _ := l.Report("")
	if all.Creates != workers*each || all.Commands != workers*each || all.Refused != workers*each || sum != workers*each || all.Times[Create].Count != workers*each || all.Failures[0].Count != workers*each {
		t.Errorf("got %+v; the projects have %d", all, sum)
	}
}

func TestProjectsAreBoundedAndTheIdleMakeRoom(t *testing.T) {
	c, l := begin()
	for n := range 10 * maxProjects {
		l.Done(Create, fmt.Sprint("p", n), time.Millisecond)
	}
	if len(l.of) != maxProjects {
		t.Errorf("%d are counted by themselves", len(l.of))
	}
	if r, ok := l.Report("p0"); !ok || r.Creates != 1 {
		t.Errorf("the first: got %+v, %v", r, ok)
	}
	if r, ok := l.Report("p900"); ok || r.Creates != 0 {
		t.Errorf("one for which there was no room: got %+v, %v", r, ok)
	}
	if r, _ := l.Report(""); r.Creates != 10*maxProjects {
		t.Errorf("all: got %+v", r)
	}
	c.pass(time.Hour)
	l.Done(Create, "p900", time.Millisecond)
	if r, ok := l.Report("p900"); !ok || r.Creates != 1 || len(l.of) != 1 {
		t.Errorf("an hour later: got %+v, %v of %d", r, ok, len(l.of))
	}
}

func TestEveryCauseHasAPlace(t *testing.T) {
	_, l := begin()
	if len(l.names) > maxCauses || len(l.cause) != len(l.names) {
		t.Errorf("there are %d causes of %d, with %d names", len(l.names), maxCauses, len(l.cause))
	}
	for _, c := range fault.Codes() {
		if _, ok := l.cause[string(c)]; !ok {
			t.Errorf("%s has none", c)
		}
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	_, l := begin()
	count := func() {
		l.Done(Create, "p", time.Millisecond)
		l.Ran("p", time.Millisecond)
		l.Ended("p", ExitCause)
		l.Failed(Create, "p", "full")
		l.Refused("p")
	}
	count()
	if n := testing.AllocsPerRun(1000, count); n > 0 {
		t.Errorf("it allocates %v times", n)
	}
}

func BenchmarkRan(b *testing.B) {
	l := New(nil)
	b.ReportAllocs()
	for b.Loop() {
		l.Ran("p", time.Millisecond)
	}
}
