// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// MaxBlanks is the most that [Options.Blanks] may ask for.
const MaxBlanks = 256

const (
	// blankQuiet is how long no sandbox may have begun or gone before a blank is made:
	// what makes it would else take the processor from whoever asks next. Who asks
	// without a pause gets sandboxes the usual way.
	blankQuiet = 50 * time.Millisecond
	// blankLoan is how long an id that was given out is waited for.
	blankLoan = time.Minute
	// blankRetry is the pause after one that could not be made.
	blankRetry = 10 * time.Second
)

// blanks keeps a few ready. It is safe for concurrent use.
type blanks struct {
	d    *Driver
	size int

	mu     sync.Mutex
	making sandbox.ID // the one that is being made
	ready  []*blank
	lent   map[sandbox.ID]*blank
	going  map[sandbox.ID]chan struct{} // forgotten, and closed once nothing is left of it
	wake   chan struct{}
}

func newBlanks(d *Driver, size int) *blanks {
	return &blanks{d: d, size: min(max(size, 0), MaxBlanks), lent: make(map[sandbox.ID]*blank), going: make(map[sandbox.ID]chan struct{}), wake: make(chan struct{}, 1)}
}

var _ runtime.Preparer = (*Driver)(nil)

// Prepared gives the id of a blank. See [runtime.Preparer].
func (d *Driver) Prepared() (sandbox.ID, bool) { return d.blanks.lend() }

func (s *blanks) lend() (sandbox.ID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.ready)
	if n == 0 {
		return "", false
	}
	b := s.ready[0] // the oldest has been up for long enough to wait already
	s.ready = slices.Delete(s.ready, 0, 1)
	b.lent = time.Now()
	s.lent[b.id] = b
	return b.id, true
}

// claim gives the blank of that id to a create; nil if there is none, or none that
// is alive. A create without one is slower, and nothing else: where the id was forgotten,
// nothing is left of the blank when claim returns.
func (s *blanks) claim(id sandbox.ID) *blank {
	s.mu.Lock()
	b := s.lent[id]
	delete(s.lent, id)
	gone := s.going[id]
	s.mu.Unlock()
	if gone != nil {
		<-gone
	}
	if b == nil {
		return nil
	}
	poke(s.wake)
	if !b.alive() {
		s.d.log.Warn("a prepared process 1 has ended before it was asked for", "sandbox", id)
		b.end(s.d)
		return nil
	}
	return b
}

// has tells whether an id is that of a blank that nobody has claimed.
func (s *blanks) has(id sandbox.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.making == id || s.lent[id] != nil || s.going[id] != nil || slices.ContainsFunc(s.ready, func(b *blank) bool { return b.id == id })
}

// run makes blanks until ctx is done, and then ends those that are left.
func (s *blanks) run(ctx context.Context) {
	defer s.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.turn())
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// turn makes a blank if one is missing and nothing else goes on, takes those back
// that were lent and forgotten, and says when to look again.
func (s *blanks) turn() time.Duration {
	s.forgotten()
	s.mu.Lock()
	missing := len(s.ready) < s.size
	s.mu.Unlock()
	quiet := s.d.calm.until(blankQuiet)
	switch {
	case !missing:
		return blankLoan
	case quiet > 0:
		return quiet
	}
	id := sandbox.NewID()
	s.mu.Lock()
	s.making = id
	s.mu.Unlock()
	b, err := s.d.makeBlank(id)
	if err != nil {
		s.d.log.Warn("a process 1 cannot be prepared; creates are slower until one can", "error", err)
		return blankRetry
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.making = append(s.ready, b), ""
	return 0
}

// forgotten ends blanks whose ids were given out and never used. An id that comes back
// later is as good as any new one, once nothing of the blank has it any more.
func (s *blanks) forgotten() {
	s.mu.Lock()
	var old []*blank
	for id, b := range s.lent {
		if time.Since(b.lent) > blankLoan {
			old = append(old, b)
			delete(s.lent, id)
			s.going[id] = make(chan struct{})
		}
	}
	s.mu.Unlock()
	for _, b := range old {
		b.end(s.d)
		s.mu.Lock()
		close(s.going[b.id])
		delete(s.going, b.id)
		s.mu.Unlock()
	}
}

func (s *blanks) end() {
	s.mu.Lock()
	left := s.ready
	for _, b := range s.lent {
		left = append(left, b)
	}
	s.ready, s.lent = nil, make(map[sandbox.ID]*blank)
	s.mu.Unlock()
	for _, b := range left {
		b.end(s.d)
	}
}

// sweepUnborn frees what the end of a server left of instances that never got as far
// as a disk: blanks, and creates that had only begun. Those that are up have a
// state, and are not touched; nor is what has a layer.
func (d *Driver) sweepUnborn() error {
	ids, err := d.live()
	if err != nil {
		return err
	}
	groups, err := d.cgroups.List()
	if err != nil {
		return err
	}
	layers, err := d.layers.List()
	if err != nil {
		return err
	}
	for _, name := range groups {
		ids = append(ids, sandbox.ID(name))
	}
	slices.Sort(ids)
	slices.Sort(layers)
	for _, id := range slices.Compact(ids) {
		if _, disk := slices.BinarySearch(layers, string(id)); disk || !sandbox.ValidID(string(id)) {
			continue
		}
		if _, err := d.instances.Lstat(string(id) + stateFile); err == nil {
			continue
		}
		if err := d.sweepDown(&Instance{d: d, id: id}); err != nil {
			d.log.Error("what was prepared for a sandbox is left behind", "sandbox", id, "error", err)
		}
	}
	return nil
}
