// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"sandpit.dev/linux/host"
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
	making sandbox.ID // the one that is being made, or made whole
	wanted wanted
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
func (d *Driver) Prepared(spec runtime.Spec) (sandbox.ID, bool) { return d.blanks.lend(spec) }

// lend prefers one that is whole. Of equals it takes the oldest, which has been up for long
// enough to wait already.
func (s *blanks) lend(spec runtime.Spec) (sandbox.ID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := -1
	if ordinary(spec) {
		n = slices.IndexFunc(s.ready, func(b *blank) bool { return b.whole != nil && b.whole.spec.Image.Root == spec.Image.Root })
	}
	if n < 0 {
		n = slices.IndexFunc(s.ready, func(b *blank) bool { return b.whole == nil })
	}
	if n < 0 {
		return "", false
	}
	b := s.ready[n]
	s.ready = slices.Delete(s.ready, n, n+1)
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
func (s *blanks) has(id sandbox.ID) bool { return slices.Contains(s.ids(), id) }

// ids are those of the blanks that nobody has claimed, with what is left of those that are
// being made or taken back.
func (s *blanks) ids() []sandbox.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.AppendSeq(slices.Collect(maps.Keys(s.lent)), maps.Keys(s.going))
	for _, b := range s.ready {
		ids = append(ids, b.id)
	}
	if s.making != "" {
		ids = append(ids, s.making)
	}
	return ids
}

// run makes blanks until ctx is done, and then ends those that are left.
func (s *blanks) run(ctx context.Context) {
	defer s.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.turn(ctx))
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// asked notes what a create asks for.
func (s *blanks) asked(spec runtime.Spec) {
	if s.size == 0 || !ordinary(spec) {
		return
	}
	s.mu.Lock()
	s.wanted.add(spec)
	s.mu.Unlock()
	poke(s.wake)
}

// turn does one step of what is missing if nothing else goes on, takes those back
// that were lent and forgotten, and says when to look again.
func (s *blanks) turn(ctx context.Context) time.Duration {
	s.forgotten()
	step := s.next()
	if step == nil {
		return blankLoan
	}
	if quiet := s.d.calm.until(blankQuiet); quiet > 0 {
		return quiet
	}
	if s.d.layers.Room() != nil {
		return blankRetry
	}
	if err := step(ctx); err != nil && ctx.Err() == nil {
		s.d.log.Warn("a process 1 cannot be prepared; creates are slower until one can", "error", err)
		return blankRetry
	}
	return 0
}

// next says what is to be done; nil: nothing. About one in four stays as it is, for those who
// ask for what is not asked for most; the others are made whole.
func (s *blanks) next() func(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) < s.size {
		return s.add
	}
	spec, ok := s.wanted.most()
	if !ok {
		return nil
	}
	var plain []*blank
	for _, b := range s.ready {
		switch {
		case b.whole == nil:
			plain = append(plain, b)
		case !s.wanted.has(b.whole.spec.Image.Root):
			return func(context.Context) error {
				if s.take(b) {
					b.end(s.d)
					s.put(nil)
				}
				return nil
			}
		}
	}
	if len(plain) <= plainOf(s.size) {
		return nil
	}
	return func(ctx context.Context) error {
		b := plain[0]
		if _, err := os.Lstat(spec.Image.Root); errors.Is(err, fs.ErrNotExist) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.wanted.forget(spec.Image.Root)
			return nil
		}
		if !s.take(b) {
			return nil
		}
		err := b.complete(ctx, s.d, spec)
		if err != nil {
			b = nil
		}
		s.put(b)
		return err
	}
}

// plainOf says how many of so many blanks stay as they are: of two it is one.
func plainOf(size int) int { return (size + 2) / 4 }

// add makes one more.
func (s *blanks) add(context.Context) error {
	id := sandbox.NewID()
	s.mu.Lock()
	s.making = id
	s.mu.Unlock()
	b, err := s.d.makeBlank(id)
	s.put(b)
	return err
}

// take gives a blank to its caller alone, who gives it back by put. False: somebody has it.
func (s *blanks) take(b *blank) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := slices.Index(s.ready, b)
	if n < 0 {
		return false
	}
	s.ready = slices.Delete(s.ready, n, n+1)
	s.making = b.id
	return true
}

// put makes what was being made ready for whoever comes next; nil: nothing came of it.
func (s *blanks) put(b *blank) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making = ""
	if b != nil {
		s.ready = append(s.ready, b)
	}
}

// takeWhole takes away those that are whole, lent ones as well: they have a disk.
func (s *blanks) takeWhole() []*Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Instance
	s.ready = slices.DeleteFunc(s.ready, func(b *blank) bool {
		if b.whole != nil {
			all = append(all, b.whole.instance)
		}
		return b.whole != nil
	})
	for id, b := range s.lent {
		if b.whole != nil {
			all = append(all, b.whole.instance)
			delete(s.lent, id)
		}
	}
	poke(s.wake)
	return all
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
		if ahead, err := d.sweepAhead(id); ahead {
			if err != nil {
				d.log.Error("what was made ahead for a sandbox is left behind", "sandbox", id, "error", err)
			}
			continue
		}
		if _, disk := slices.BinarySearch(layers, string(id)); disk || !sandbox.ValidID(string(id)) {
			continue
		}
		if _, err := d.instances.Lstat(string(id) + host.StateFile); err == nil {
			continue
		}
		if err := d.sweepDown(&Instance{d: d, id: id}); err != nil {
			d.log.Error("what was prepared for a sandbox is left behind", "sandbox", id, "error", err)
		}
	}
	return nil
}
