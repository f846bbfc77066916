// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package prewarm keeps sandboxes that run before anybody asks for them. A [Stock] counts them: which
// are ready, how many more are to be made, when, and of which image. [Pools] makes them, gives
// them to creates, and removes what is left. It knows no verb.
//
// A pool keeps instances that run and have no record, only an event, until a create
// claims one: its id becomes the sandbox's, and the create goes on as if the driver had
// just made it, and gives it the limits that are asked for. A pool without an image of its
// own follows the last creates.
package prewarm

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

const (
	// quiet is how long no create may have been at work before a stock is filled, since that
	// takes the processors from it; patience is how long that is heeded before each fill.
	quiet    = 50 * time.Millisecond
	patience = time.Second
	// Idle is how long a stock that has grown keeps what nobody takes, and how long nothing
	// is to be done where nothing happens.
	Idle = time.Minute
	// retry is the pause after one that could not be made.
	retry = 30 * time.Second
)

// Options are those of a stock.
type Options struct {
	Image   string         // its name in the catalogue
	Recent  bool           // what the last creates asked for instead; before the first one, Image
	Runtime string         // whose instances
	Limits  sandbox.Limits // that they have
	Min     int            // so many are kept ready
	Max     int            // so many at most: each create that found none adds one, each idle minute takes one off
	Refill  int            // so many are made at a time
	Figures metrics.Pool
}

// Entry is a running instance without a record.
type Entry struct {
	ID       sandbox.ID
	Instance runtime.Instance
	Client   *agent.Client
	Image    image.Image
	Limits   sandbox.Limits
	Unwatch  context.CancelFunc // ends its watcher; set before it is ready
}

// Resizer returns the instance if its limits can change, else nil.
func (e *Entry) Resizer() runtime.Resizer {
	r, _ := e.Instance.(runtime.Resizer)
	return r
}

// Become gives the instance the limits and the host name of the sandbox that it is to be. It was
// made with its id as its name.
func (e *Entry) Become(ctx context.Context, l sandbox.Limits, hostname string) error {
	if e.Limits != l {
		if err := e.Resizer().Resize(ctx, l); err != nil {
			return err
		}
	}
	if n, ok := e.Instance.(runtime.Namer); ok && hostname != string(e.ID) {
		return n.SetHostname(ctx, hostname)
	}
	return nil
}

// greet asks for a sign of life. To be told which account the sandbox has is one, too.
func (e *Entry) greet(ctx context.Context, account *runtime.Account) error {
	if account != nil {
		return e.Client.BeginAccount(ctx, account.Account)
	}
	_, err := e.Client.Ping(ctx)
	return err
}

// Expect has the instance made ready for its next call, where it can be.
func (e *Entry) Expect() {
	if x, ok := e.Instance.(runtime.Expecter); ok {
		x.Expect()
	}
}

// Stock is the entries of one pool. It is safe for concurrent use.
type Stock struct {
	o Options

	mu     sync.Mutex
	recent *recentImages // nil: all are of Options.Image
	ready  []*Entry      // oldest first
	making int
	target int       // how many shall be ready: Min to Max
	moved  time.Time // when target last changed, or one was asked for
	short  time.Time // since when more should be made; zero: they are, or need not
	retry  time.Time // not before, after a failure
	absent bool      // the failure was that the image is not built yet
	hits   int64
	misses int64
}

// New returns an empty stock.
func New(o Options) *Stock {
	s := &Stock{o: o, target: o.Min}
	if o.Recent {
		s.recent = &recentImages{names: []string{o.Image}}
	}
	return s
}

// Resize sets how many are kept ready, how many at most, and how many are made at a time.
func (s *Stock) Resize(least, most, refill int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Min, s.o.Max, s.o.Refill = least, most, refill
	s.target = min(max(s.target, least), most)
	s.retry = time.Time{}
}

func (s *Stock) size() (least, most, refill int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.Min, s.o.Max, s.o.Refill
}

// empty reports whether there is nothing of it, and nothing being made.
func (s *Stock) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready)+s.making == 0
}

// Fits reports whether a new sandbox could be one of the stock's.
func (s *Stock) Fits(box *sandbox.Sandbox) bool {
	return (s.o.Recent || box.Image == s.o.Image) && box.Runtime == s.o.Runtime && box.Parent == "" && len(box.Mounts) == 0
}

// Add makes one ready that Due asked for.
func (s *Stock) Add(e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	s.ready = append(s.ready, e)
	s.tell()
}

// Fail ends the making of one that Due asked for. No other is due for a while; if it failed because
// its image is not built yet, until the next create.
func (s *Stock) Fail(absent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	s.retry, s.absent = time.Now().Add(retry), absent
}

// Take takes the oldest one out that can be box, or that is of another build of its image; nil
// if there is none.
func (s *Stock) Take(box *sandbox.Sandbox) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := slices.IndexFunc(s.ready, func(e *Entry) bool {
		return e.Image.Name == box.Image && (e.Limits == box.Limits || e.Resizer() != nil)
	})
	if n < 0 {
		return nil
	}
	return s.removeAt(n)
}

// Drop takes a certain one out, and reports whether it was there.
func (s *Stock) Drop(e *Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := slices.Index(s.ready, e)
	if n >= 0 {
		s.removeAt(n)
	}
	return n >= 0
}

// TakeAll takes all out.
func (s *Stock) TakeAll() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.ready
	s.ready = nil
	s.tell()
	return all
}

// TakeBuild takes out what is of one build of an image.
func (s *Stock) TakeBuild(digest string) []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Entry
	s.ready = slices.DeleteFunc(s.ready, func(e *Entry) bool {
		if e.Image.Digest == digest {
			out = append(out, e)
		}
		return e.Image.Digest == digest
	})
	s.tell()
	return out
}

func (s *Stock) removeAt(n int) *Entry {
	e := s.ready[n]
	s.ready = slices.Delete(s.ready, n, n+1)
	s.tell()
	return e
}

func (s *Stock) tell() { s.o.Figures.Ready.Set(float64(len(s.ready))) }

// Count counts a create of an image that could have been served, and whether it was.
func (s *Stock) Count(image string, hit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent != nil {
		s.recent.add(image)
		if s.absent { // it may be built by now
			s.retry, s.absent = time.Time{}, false
		}
	}
	s.moved = time.Now()
	if hit {
		s.hits++
		s.o.Figures.Hits.Inc()
		return
	}
	s.misses++
	s.o.Figures.Misses.Inc()
	s.target = min(s.target+1, s.o.Max)
}

// Due says how many are to be made now, each of which ends with Add or Fail, and when to ask again. since
// is when a create was last at work; busy, that one is.
func (s *Stock) Due(at, since time.Time, busy bool) (n int, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.target > s.o.Min && at.Sub(s.moved) > Idle {
		s.target--
		s.moved = at
	}
	missing := s.target - len(s.ready) - s.making
	switch {
	case missing <= 0:
		s.short = time.Time{}
		return 0, Idle
	case at.Before(s.retry):
		return 0, s.retry.Sub(at)
	case s.making >= s.o.Refill:
		return 0, Idle // whoever makes them asks again
	}
	if s.short.IsZero() {
		s.short = at
	}
	if at.Sub(s.short) < patience && (busy || at.Sub(since) < quiet) {
		return 0, quiet
	}
	n = min(missing, s.o.Refill-s.making)
	s.making, s.short = s.making+n, time.Time{}
	return n, Idle
}

// Next returns the image of the one that is to be made next.
func (s *Stock) Next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent == nil {
		return s.o.Image
	}
	ready := make(map[string]int)
	for _, e := range s.ready {
		ready[e.Image.Name]++
	}
	return s.recent.next(ready)
}

// Surplus takes out what there is too much of, what no create asked for of late, and what is of
// another build of an image than current; the zero Image: none is known.
func (s *Stock) Surplus(current image.Image) []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Entry
	s.ready = slices.DeleteFunc(s.ready, func(e *Entry) bool {
		old := e.Image.Name == current.Name && e.Image.Digest != current.Digest ||
			s.recent != nil && !s.recent.has(e.Image.Name)
		if old {
			out = append(out, e)
		}
		return old
	})
	for len(s.ready) > s.target {
		out = append(out, s.removeAt(0))
	}
	s.tell()
	return out
}

// Info is how a stock stands.
type Info struct {
	Next   string // the image that a first one would be of
	Ready  int
	Making int
	Target int // how many shall be ready now
	Hits   int64
	Misses int64
	Images map[string]int // the ready ones, by image
}

// Info returns how the stock stands.
func (s *Stock) Info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := Info{Next: s.o.Image, Ready: len(s.ready), Making: s.making, Target: s.target, Hits: s.hits, Misses: s.misses}
	if s.recent != nil {
		i.Next = s.recent.next(nil)
	}
	i.Images = make(map[string]int)
	for _, e := range s.ready {
		i.Images[e.Image.Name]++
	}
	return i
}
