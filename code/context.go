// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// contexts are those of one sandbox, shells included. They are read from the store at first use.
type contexts struct {
	s  *Service
	id sandbox.ID

	mu     sync.Mutex
	loaded bool
	all    []*codeContext // oldest first
	alone  int            // that live for one cell
}

// codeContext is one context. Its record outlives its kernels, and the server.
type codeContext struct {
	in      *contexts
	turns   turns // of the cell, or the start, that is at it
	waiting atomic.Int32
	alone   bool          // it lives for one cell, and is in no list and no store
	gone    chan struct{} // closed when it was deleted, or never came to be

	mu       sync.Mutex
	rec      sandbox.Context
	saved    bool // it is in the store
	kernel   *codeKernel
	starting bool    // a kernel is on its way
	recent   []*cell // the last commands of a shell, the newest last
}

func (all *contexts) newContext(rec sandbox.Context) *codeContext {
	return &codeContext{in: all, gone: make(chan struct{}), rec: rec}
}

// savedState is what a record's State holds.
type savedState struct {
	Kernel  kernel.State  `json:"kernel"`
	Timeout time.Duration `json:"timeout"` // of the cell that runs
}

// bytes returns the state as a record keeps it.
func (s savedState) bytes() []byte {
	b, _ := json.Marshal(s) // numbers, truths and strings always have JSON
	return b
}

// attached is what an engine.Use and an engine.Visit keep for this package.
type attached interface {
	Attached(open func(sandbox.ID) any) any
}

// open returns the contexts of a sandbox as they are in memory.
func (s *Service) open(a attached) *contexts {
	return a.Attached(func(id sandbox.ID) any { return &contexts{s: s, id: id} }).(*contexts)
}

// load returns the contexts of a sandbox, read from the store if that was not done yet. A kernel
// that was not adopted before has ended.
func (s *Service) load(ctx context.Context, a attached) (*contexts, error) {
	all := s.open(a)
	all.mu.Lock()
	loaded := all.loaded
	all.mu.Unlock()
	if loaded {
		return all, nil
	}
	var recs []*sandbox.Context
	err := s.store.View(ctx, func(tx store.Tx) (err error) {
		recs, err = tx.Contexts().List(all.id)
		return err
	})
	if err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.loaded {
		return all, nil
	}
	all.loaded = true
	for _, rec := range recs {
		if rec.Ended == "" {
			rec.Ended = "its sandbox, or its kernel, went down"
		}
		cc := all.newContext(*rec)
		cc.saved = true
		all.all = append(all.all, cc)
	}
	return all, nil
}

// loadFor is load for a call that may make the context want, of which it fills in what the sandbox decides.
func (s *Service) loadFor(ctx context.Context, u *engine.Use, want *sandbox.Context) (*contexts, error) {
	if err := u.Place(&want.User, &want.Cwd); err != nil {
		return nil, err
	}
	all, err := s.load(ctx, u)
	if err != nil {
		return nil, err
	}
	fields := map[string][]string{"name": {want.Name}, "cwd": {want.Cwd}}
	for _, name := range slices.Sorted(maps.Keys(want.Env)) {
		fields["env"] = append(fields["env"], name, want.Env[name])
	}
	return all, u.CheckRecord(ctx, fields)
}

// contextOf returns the context that a cell asks for, new or not.
func (s *Service) contextOf(ctx context.Context, u *engine.Use, r Request, want sandbox.Context) (*codeContext, error) {
	all, err := s.loadFor(ctx, u, &want)
	if err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if !r.Stateless {
		for _, cc := range all.all {
			switch rec := cc.record(); {
			case r.ContextID == "" && rec.Default && rec.Language == want.Language:
				return cc, nil
			case rec.ID == r.ContextID && (want.Language == "" || want.Language == rec.Language):
				return cc, nil
			case rec.ID == r.ContextID:
				return nil, fault.InvalidField("language", "%s is not the language of the context %s, which is %s", want.Language, rec.ID, rec.Language)
			}
		}
		if r.ContextID != "" {
			return nil, noContext(r.ContextID)
		}
	}
	return all.addLocked(want, r.Stateless)
}

// addLocked adds a context without a kernel, or a shell if it has a name.
func (all *contexts) addLocked(want sandbox.Context, alone bool) (*codeContext, error) {
	switch {
	case want.Name != "" && all.countLocked(true) >= MaxShells:
		return nil, fault.New(fault.Exhausted, "the sandbox has %d shells already", MaxShells).
			WithRemedy("delete one, or run the command in one of them")
	case want.Name == "" && all.countLocked(false)+all.alone >= MaxContexts:
		return nil, fault.New(fault.Exhausted, "the sandbox has %d contexts of code already, those of single cells included", MaxContexts).
			WithRemedy("delete one, or run the code in one of them")
	}
	want.ID, want.Sandbox, want.CreatedAt = sandbox.NewProcessID(), all.id, all.s.engine.Now()
	cc := all.newContext(want)
	if cc.alone = alone; alone {
		all.alone++
	} else {
		all.all = append(all.all, cc)
	}
	return cc, nil
}

// countLocked counts the shells, or the other contexts.
func (all *contexts) countLocked(shells bool) int {
	n := 0
	for _, cc := range all.all {
		if (cc.record().Name != "") == shells {
			n++
		}
	}
	return n
}

// find returns the first context that is as ok says; nil if none is.
func (all *contexts) find(ok func(*codeContext) bool) *codeContext {
	all.mu.Lock()
	defer all.mu.Unlock()
	if i := slices.IndexFunc(all.all, ok); i >= 0 {
		return all.all[i]
	}
	return nil
}

// list returns all contexts that are listed.
func (all *contexts) list() []*codeContext {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Clone(all.all)
}

// drop takes a context out of its sandbox's list.
func (cc *codeContext) drop() {
	all := cc.in
	all.mu.Lock()
	defer all.mu.Unlock()
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.isGone() {
		return
	}
	close(cc.gone)
	if cc.alone {
		all.alone--
		return
	}
	all.all = slices.DeleteFunc(all.all, func(x *codeContext) bool { return x == cc })
}

func (cc *codeContext) isGone() bool {
	select {
	case <-cc.gone:
		return true
	default:
		return false
	}
}

// record returns the record as it is now.
func (cc *codeContext) record() sandbox.Context {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	return cc.rec
}

// acquire waits for the lock. It is false if the context is gone by then. Release it.
func (cc *codeContext) acquire(ctx context.Context) (bool, error) {
	place, err := cc.ask()
	if err != nil {
		return false, err
	}
	return cc.await(ctx, place)
}

// ask returns a place among those that wait for the lock. Await it.
func (cc *codeContext) ask() (chan struct{}, error) {
	if n := cc.waiting.Add(1); n > MaxQueued {
		cc.waiting.Add(-1)
		return nil, fault.New(fault.Exhausted, "%d cells wait for the context already", MaxQueued).
			WithRemedy("ask again later, or interrupt the one that runs")
	}
	return cc.turns.ask(), nil
}

// await is the rest of acquire.
func (cc *codeContext) await(ctx context.Context, place chan struct{}) (bool, error) {
	defer cc.waiting.Add(-1)
	here, leave := cc.in.s.engine.Bind(ctx)
	defer leave()
	ok, err := cc.turns.wait(here, cc.gone, place)
	if err != nil {
		if ctx.Err() == nil {
			err = context.Cause(here)
		}
		return false, err
	}
	if ok && cc.isGone() {
		cc.release()
		ok = false
	}
	return ok, nil
}

// acquireAtAll waits for the lock, however long that takes.
func (cc *codeContext) acquireAtAll() { <-cc.turns.ask() }

func (cc *codeContext) release() { cc.turns.release() }

func (cc *codeContext) isSaved() bool {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	return cc.saved
}

// dropUnsaved drops a context whose first cell never was on record. The caller has the lock.
func (cc *codeContext) dropUnsaved() {
	if !cc.isSaved() {
		cc.drop()
	}
}

// discard takes a context away whose first kernel never came up. The caller has the lock.
func (cc *codeContext) discard(ctx context.Context) {
	saved := cc.isSaved()
	cc.drop()
	if !saved {
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := cc.in.s.remove(ctx, cc); err != nil {
		cc.in.s.log.Error("a context whose kernel never came up cannot be taken off the records; delete it", "sandbox", cc.in.id, "context", cc.record().ID, "error", err)
	}
}

// remove takes a context off the records; one that is on none is fine.
func (s *Service) remove(ctx context.Context, cc *codeContext) error {
	return s.store.Update(ctx, func(tx store.Tx) error {
		err := tx.Contexts().Delete(cc.in.id, cc.record().ID)
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return err
	})
}

// change changes the record in memory.
func (cc *codeContext) change(fn func(*sandbox.Context)) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	fn(&cc.rec)
}

// put writes the record as it is then, so that of several writers the last is right. A
// context that was deleted stays so.
func (cc *codeContext) put(tx store.Tx) error {
	cc.mu.Lock()
	rec, saved, gone := cc.rec, cc.saved, cc.isGone()
	cc.mu.Unlock()
	switch {
	case cc.alone || gone:
		return nil
	case !saved:
		if _, err := tx.Sandboxes().Get(cc.in.id); err != nil {
			return err
		}
		return tx.Contexts().Insert(&rec)
	}
	err := tx.Contexts().Update(&rec)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// setSaved notes that put was committed.
func (cc *codeContext) setSaved() {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	cc.saved = !cc.alone
}

// save writes a context that is in the store already.
func (cc *codeContext) save(ctx context.Context) {
	cc.mu.Lock()
	saved := cc.saved && !cc.isGone()
	cc.mu.Unlock()
	if !saved {
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := cc.in.s.store.Update(ctx, cc.put); err != nil {
		cc.in.s.log.Error("the end of a context's kernel cannot be recorded; the next start does it", "sandbox", cc.in.id, "error", err)
	}
}

// detached returns a context for a commit that is made whatever becomes of ctx.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	const bound = 30 * time.Second // it holds off a store that hangs
	return context.WithTimeout(context.WithoutCancel(ctx), bound)
}
