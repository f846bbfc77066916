// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// contexts are those of one box. They are read from the store at first use.
type contexts struct {
	mu     sync.Mutex
	loaded bool
	all    []*codeContext // oldest first
	alone  int            // that live for one cell
}

// codeContext is one context. Its record outlives its kernels, and the server.
type codeContext struct {
	b       *box
	turn    *turn // of the cell, or the start, that is at it; cells come in the order of asking
	waiting atomic.Int32
	alone   bool // it lives for one cell, and is in no list and no store

	mu       sync.Mutex
	rec      sandbox.Context
	saved    bool // it is in the store
	gone     bool // it was deleted, or never came to be
	kernel   *codeKernel
	starting bool    // a kernel is on its way
	recent   []*cell // the last commands of a shell, the newest last
}

// savedState is what a record's State holds.
type savedState struct {
	Kernel  kernel.State  `json:"kernel"`
	Timeout time.Duration `json:"timeout"` // of the cell that runs
}

// loadContexts reads a sandbox's contexts, if that was not done yet. A kernel that nobody
// has adopted before is none any more.
func (e *Engine) loadContexts(ctx context.Context, b *box) error {
	b.contexts.mu.Lock()
	loaded := b.contexts.loaded
	b.contexts.mu.Unlock()
	if loaded {
		return nil
	}
	var recs []*sandbox.Context
	err := e.store.View(ctx, func(tx store.Tx) (err error) {
		recs, err = tx.Contexts().List(b.id)
		return err
	})
	if err != nil {
		return err
	}
	b.contexts.mu.Lock()
	defer b.contexts.mu.Unlock()
	if b.contexts.loaded {
		return nil
	}
	b.contexts.loaded = true
	for _, rec := range recs {
		if rec.Ended == "" {
			rec.Ended = "its sandbox, or its kernel, went down"
		}
		b.contexts.all = append(b.contexts.all, &codeContext{b: b, turn: newTurn(), rec: *rec, saved: true})
	}
	return nil
}

// contextOf gives the context that a cell asks for, new or not.
func (e *Engine) contextOf(ctx context.Context, b *box, r CodeRequest, want sandbox.Context) (*codeContext, error) {
	if err := e.loadContexts(ctx, b); err != nil {
		return nil, err
	}
	if err := e.refuseInContext(ctx, b, &want); err != nil {
		return nil, err
	}
	b.contexts.mu.Lock()
	defer b.contexts.mu.Unlock()
	if !r.Stateless {
		for _, cc := range b.contexts.all {
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
	return b.addContext(want, r.Stateless)
}

// addContext adds a context without a kernel. The caller has contexts.mu.
func (b *box) addContext(want sandbox.Context, alone bool) (*codeContext, error) {
	all := &b.contexts
	if want.Name != "" {
		return b.addShell(want)
	}
	if b.contextsLocked(false)+all.alone >= MaxContexts {
		return nil, fault.New(fault.Exhausted, "the sandbox has %d contexts of code already, those of single cells included", MaxContexts).
			WithRemedy("delete one, or run the code in one of them")
	}
	want.ID, want.Sandbox, want.CreatedAt = sandbox.NewProcessID(), b.id, b.now()
	cc := &codeContext{b: b, turn: newTurn(), rec: want, alone: alone}
	if alone {
		all.alone++
	} else {
		all.all = append(all.all, cc)
	}
	return cc, nil
}

// drop takes a context out of its box's list.
func (cc *codeContext) drop() {
	all := &cc.b.contexts
	all.mu.Lock()
	defer all.mu.Unlock()
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.gone {
		return
	}
	cc.gone = true
	if cc.alone {
		all.alone--
		return
	}
	all.all = slices.DeleteFunc(all.all, func(x *codeContext) bool { return x == cc })
}

// record is the record as of now.
func (cc *codeContext) record() sandbox.Context {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	return cc.rec
}

// take waits for the turn. It is false if the context is gone then. Give the turn back.
func (cc *codeContext) take(ctx context.Context, g *group) (bool, error) {
	defer cc.waiting.Add(-1)
	if n := cc.waiting.Add(1); n > MaxQueued {
		return false, fault.New(fault.Exhausted, "%d cells wait for the context already", MaxQueued).
			WithRemedy("ask again later, or interrupt the one that runs")
	}
	here, leave := g.bind(ctx)
	defer leave()
	if err := cc.turn.take(here); err != nil {
		if ctx.Err() == nil {
			err = shuttingDown()
		}
		return false, err
	}
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.gone {
		cc.turn.give()
	}
	return !cc.gone, nil
}

// unsaved drops a context whose first kernel never came up. The caller has the turn.
func (cc *codeContext) unsaved() {
	cc.mu.Lock()
	saved := cc.saved
	cc.mu.Unlock()
	if !saved {
		cc.drop()
	}
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
	rec, saved, gone := cc.rec, cc.saved, cc.gone
	cc.mu.Unlock()
	switch {
	case cc.alone || gone:
		return nil
	case !saved:
		if _, err := tx.Sandboxes().Get(cc.b.id); err != nil {
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

// wasPut notes that put was committed.
func (cc *codeContext) wasPut() {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	cc.saved = !cc.alone
}

// state is what a record keeps of a kernel's session.
func (s savedState) bytes() []byte {
	b, _ := json.Marshal(s) // numbers, truths and strings always have JSON
	return b
}
