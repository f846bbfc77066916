// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/command"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/expiry"
	"sandpit.dev/engine/gates"
	"sandpit.dev/engine/pausing"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/sudo"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// entry is what the engine keeps in memory of one sandbox: while it runs, and
// while a verb is at it. Every user of an entry holds a reference (see
// Engine.acquire); a running sandbox's own life holds one too.
type entry struct {
	id      sandbox.ID
	refs    int    // guarded by Engine.mu
	project string // set with the first record

	turn *core.Turn // of the lifecycle verbs
	now  func() time.Time

	// record is the last committed record; nil before it was read, and after it
	// was deleted. What it points to is never changed.
	record atomic.Pointer[sandbox.Sandbox]

	ending  atomic.Int32                       // verbs that are about to take it down, see takeAway
	hearing atomic.Pointer[context.CancelFunc] // of who waits for the first word of its agent

	making   atomic.Pointer[context.CancelCauseFunc] // ends the making of its image, see createLater; nil: none is made
	answered bool                                    // its create was answered before it was made; guarded by the turn
	deleted  bool                                    // the making ended since it is deleted; guarded by the turn

	attached any // what the extension keeps with it; guarded by mu

	secrets secrets.Entry // those that are open

	commitMu sync.Mutex // one commit of this sandbox at a time
	read     bool       // the store was asked
	// committing: the store may have a record that is not in memory yet, and have told of it.
	committing atomic.Bool
	stale      bool // a commit failed: what the store has is not known

	mu     sync.Mutex
	live   *session // nil unless up and to stay so
	frozen *session // what live was, and will be again, while the sandbox is paused
	busy   int      // commands, terminals and transfers that are not over
	last   activity // the last that counts

	audience process.Audience
}

// activity is a use that counts against idleness.
type activity = expiry.Use

// session is one time of being up.
type session struct {
	inst    runtime.Instance
	client  *agent.Client
	image   map[string]string                 // the image's variables
	env     atomic.Pointer[command.Variables] // of every command
	down    chan struct{}                     // closed when the instance is down, after exit was set
	exit    runtime.Exit
	ending  atomic.Pointer[runtime.Exit] // what a verb takes it down for, where that is no stop
	ends    endings                      // of processes that it took along
	signals process.Signals
	passed  atomic.Bool // its instance is about to begin another life, or did: see dial
	pauses  pausing.Clock
	gate    *gates.Gate
	placed  atomic.Bool // see Use.awaitAccount
	sudo    sudo.Told
	unfit   bool // whether it has the limits and the host name of the record is not known; guarded by the turn

	// unheard is that an earlier server brought it up, and its agent has not answered yet or
	// its commands are not adopted: uses wait for that in the entry's turn.
	unheard atomic.Bool
	asked   time.Time // when it said nothing the last time that it was waited for so; guarded by the turn
}

// acquire returns the entry of a sandbox, read from the store if it is not in
// memory. It is fault.NotFound if there is none. Release it.
func (e *Engine) acquire(ctx context.Context, id sandbox.ID) (*entry, error) {
	e.mu.Lock()
	b := e.entries[id]
	if b == nil {
		b = &entry{id: id, turn: core.NewTurn(), now: e.now}
		e.entries[id] = b
	}
	b.refs++
	e.mu.Unlock()
	if b.record.Load() != nil {
		return b, nil
	}
	if err := e.load(ctx, b); err != nil {
		e.release(b)
		return nil, err
	}
	return b, nil
}

// stored reads a record from the store.
func (e *Engine) stored(ctx context.Context, id sandbox.ID) (s *sandbox.Sandbox, err error) {
	err = e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		s, err = tx.Sandboxes().Get(id)
		return err
	})
	return s, err
}

func (e *Engine) load(ctx context.Context, b *entry) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	if b.record.Load() != nil {
		return nil
	}
	if b.read {
		return core.NoSandbox(string(b.id))
	}
	s, err := e.stored(ctx, b.id)
	if fault.Is(err, fault.NotFound) {
		b.read = true
		return core.NoSandbox(string(b.id))
	}
	if err != nil {
		return err
	}
	e.cacheRecord(b, s)
	return nil
}

// cacheRecord makes s the entry's record.
func (e *Engine) cacheRecord(b *entry, s *sandbox.Sandbox) {
	b.read, b.project = true, s.Project
	e.setRecord(b, e.settings.Load().Kept(s))
	if last := e.clock.Used(b.id); last.At.After(b.lastUse().At) {
		b.touch(last.At, last.What)
	}
}

// setRecord makes s the entry's record, which is found by its key alone from then on.
func (e *Engine) setRecord(b *entry, s *sandbox.Sandbox) {
	was := b.record.Swap(s)
	if was != nil && was.Key == s.Key {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if was != nil {
		e.unnameLocked(was)
	}
	if s.Key != "" {
		e.names[name{s.Project, s.Key}] = s.ID
	}
}

// unnameLocked has s not be found by its key any more, unless that is another's by now.
func (e *Engine) unnameLocked(s *sandbox.Sandbox) {
	if n := (name{s.Project, s.Key}); e.names[n] == s.ID {
		delete(e.names, n)
	}
}

// entryOf adds an entry for a record that is being inserted. Release it.
func (e *Engine) entryOf(id sandbox.ID) *entry {
	b := &entry{id: id, turn: core.NewTurn(), now: e.now, refs: 1}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entries[id] = b
	return b
}

func (e *Engine) retain(b *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b.refs++
}

func (e *Engine) release(b *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.refs--; b.refs > 0 {
		return
	}
	delete(e.entries, b.id)
	s := b.record.Load()
	if s == nil {
		return
	}
	e.unnameLocked(s)
	if last := b.lastUse(); s.TTL > 0 && last.At.After(s.LastActivity) {
		e.clock.Remember(b.id, last) // the record does not know of it
	}
}

// forget takes the record of a deleted sandbox out of memory.
func (e *Engine) forget(b *entry) {
	s := b.record.Swap(nil)
	if s == nil {
		return
	}
	e.core.Metrics.Moved(s.State, "")
	e.clock.Drop(b.id)
	if gone := e.deleted.Load(); gone != nil {
		(*gone)(b.id)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.unadopted, b.id)
	e.unnameLocked(s)
}

// current is a copy of the record, with what memory knows better. It is
// fault.NotFound once the sandbox is deleted.
func (b *entry) current() (*sandbox.Sandbox, error) {
	s := b.record.Load()
	if s == nil {
		return nil, core.NoSandbox(string(b.id))
	}
	c := clone(s)
	b.known(c)
	return c, nil
}

// told is current, but reads the store while a commit is under way: who follows events learns of a commit as soon as the store has
// it, which is before memory has it.
func (e *Engine) told(ctx context.Context, b *entry) (*sandbox.Sandbox, error) {
	committing := b.committing.Load() // before the record: once it is over, that is there
	s, err := b.current()
	if err != nil || !committing {
		return s, err
	}
	stored, err := e.stored(ctx, b.id)
	if err != nil {
		return s, nil //nolint:nilerr // what memory has is as good as it was before the commit
	}
	b.known(stored)
	return stored, nil
}

// known puts into a copy of the record what memory knows better.
func (b *entry) known(s *sandbox.Sandbox) {
	if last := b.lastUse(); !last.At.IsZero() {
		s.LastActivity = last.At
	}
	if l := b.standing(); l != nil {
		s.UnresponsiveSince = l.client.SilentSince()
	}
}

func clone(s *sandbox.Sandbox) *sandbox.Sandbox {
	c := *s
	c.Env, c.Metadata, c.Handle = maps.Clone(s.Env), maps.Clone(s.Metadata), slices.Clone(s.Handle)
	c.Mounts, c.Skills = slices.Clone(s.Mounts), slices.Clone(s.Skills)
	c.Previews.Ports = slices.Clone(s.Previews.Ports)
	return &c
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// touch notes a call that counts against idleness. Of two calls the one that is
// noted last is the later one, whatever became of the host's clock in between.
func (b *entry) touch(at time.Time, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = activity{At: at, What: what}
}

func (b *entry) lastUse() activity {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// hold takes the sandbox into use if it is up and its agent was heard of; nil if not.
func (b *entry) hold(at time.Time, what string) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live == nil || b.live.unheard.Load() {
		return nil
	}
	return b.holdLocked(at, what)
}

// holdUnheard is hold for who adopts its commands.
func (b *entry) holdUnheard(at time.Time, what string) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live == nil {
		return nil
	}
	return b.holdLocked(at, what)
}

func (b *entry) holdLocked(at time.Time, what string) *session {
	b.busy++
	b.last = activity{At: at, What: what}
	return b.live
}

// unhold ends a use.
func (b *entry) unhold(at time.Time, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
	b.last = activity{At: at, What: what}
}

// withdraw makes the sandbox unavailable to new uses, if still may is nil or
// agrees (it sees how many uses there are, and the last), and gives what
// was up, if anything, frozen or not.
func (b *entry) withdraw(may func(busy int, last activity) bool) (was *session, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if may != nil && !may(b.usesLocked(), b.last) {
		return nil, false
	}
	was = b.live
	if was == nil {
		was = b.frozen
	}
	b.live, b.frozen = nil, nil
	return was, true
}

// put makes available what withdraw took: to uses, or frozen, as it is.
func (b *entry) put(l *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.pauses.Paused() {
		b.live, b.frozen = nil, l
	} else {
		b.live, b.frozen = l, nil
	}
}

// uncertain reports whether what the store has of the sandbox is not known.
func (b *entry) uncertain() bool {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	return b.stale
}

// up returns what new uses get; nil where the sandbox is down or paused.
func (b *entry) up() *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live
}

// standing returns what is up, frozen or not.
func (b *entry) standing() *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live != nil {
		return b.live
	}
	return b.frozen
}

// uses counts those that are not over. Where that is not known, of a sandbox whose agent
// nobody has heard of, it is 1 at least.
func (b *entry) uses() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.usesLocked()
}

func (b *entry) usesLocked() int {
	if b.live != nil && b.live.unheard.Load() {
		return max(b.busy, 1)
	}
	return b.busy
}
