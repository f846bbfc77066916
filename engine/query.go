// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/query"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Get returns a sandbox. It counts as a use: whoever asks for a sandbox by name
// is about to work with it.
func (e *Engine) Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	return e.get(ctx, c, ref, func(b *entry) { b.touch(e.now(), actCall) })
}

// Inspect is Get that does not count as a use.
func (e *Engine) Inspect(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	return e.get(ctx, c, ref, func(*entry) {})
}

// get returns a sandbox, of whose entry note is told.
func (e *Engine) get(ctx context.Context, c access.Caller, ref string, note func(*entry)) (*sandbox.Sandbox, error) {
	c = c.Inside()
	for tries := 1; ; tries++ {
		b, err := e.visit(ctx, c, access.SandboxesRead, ref)
		if err != nil {
			return nil, err
		}
		note(b)
		var s *sandbox.Sandbox
		if err = e.outcomes.Wait(ctx, b); err == nil {
			s, err = e.told(ctx, b)
		}
		again := tries < upTries && e.passedOn(c, ref, b)
		e.leave(b)
		if !again {
			return s, err
		}
	}
}

// Page is one page of sandboxes.
type Page struct {
	Items  []*sandbox.Sandbox
	Next   string // the cursor of the next page; empty at the end
	Total  int    // how many match in all
	Counts map[sandbox.State]int
}

// Bounds of a page.
const (
	DefaultPage = store.DefaultPage
	MaxPage     = store.MaxPage
)

// What a list is sorted by, and the spans that it is of; see package store.
type (
	SandboxSort  = store.SandboxSort
	SandboxSpans = store.SandboxSpans
	TimeSpan     = store.TimeSpan
	AmountSpan   = store.AmountSpan
)

// SandboxSorts returns all that a list is sorted by.
func SandboxSorts() []SandboxSort { return store.SandboxSorts() }

// SandboxesRequest selects sandboxes of the caller's project. Zero fields select all.
type SandboxesRequest struct {
	AllProjects bool   // those of Project, or of all; it needs the scope server:admin
	Project     string // with AllProjects
	States      []sandbox.State
	Image       string            // exact
	ImagePart   string            // a part of the image's name, letter case ignored
	NamePart    string            // a part of the key, or of the id of one without a key, letter case ignored
	Search      string            // a part of id, key or image, letter case ignored
	Metadata    map[string]string // all of these labels
	Sort        store.SandboxSort // empty: by creation
	Oldest      bool              // oldest, or least, first; else newest, or greatest
	Limit       int               // at most MaxPage; 0: DefaultPage
	Cursor      string            // of the page before; or:
	Offset      int               // rows to pass over, for numbered pages; never with a Cursor
	store.SandboxSpans
}

// List returns the caller's sandboxes that match. It does not count as a use of any of them.
func (e *Engine) List(ctx context.Context, c access.Caller, r SandboxesRequest) (Page, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return Page{}, err
	}
	defer e.group.Leave()
	if !r.AllProjects {
		r.Project = c.Project
	} else if err := c.Require(access.ServerAdmin); err != nil {
		return Page{}, err
	}
	q := store.SandboxQuery{
		Project: r.Project, States: r.States, Image: r.Image, ImagePart: r.ImagePart, NamePart: r.NamePart, Search: r.Search, Metadata: r.Metadata,
		Sort: r.Sort, SandboxSpans: r.SandboxSpans, Oldest: r.Oldest, Limit: r.Limit, Cursor: r.Cursor, Offset: r.Offset,
	}
	if err := query.Sandboxes(&q); err != nil {
		return Page{}, err
	}
	err := e.outcomes.WaitFor(ctx, func(of *entry) bool {
		s := of.record.Load()
		return s != nil && (r.Project == "" || s.Project == r.Project) // without a record: it was deleted, and nobody lists it
	})
	if err != nil {
		return Page{}, err
	}
	if r.Sort == store.SortActivity || r.Active.Bounded() {
		if err := e.noteActivity(ctx, r.Project); err != nil {
			return Page{}, err
		}
	}
	var p Page
	err = e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		if p.Items, p.Next, err = tx.Sandboxes().List(q); err != nil {
			return err
		}
		if q.Cursor == "" && q.Offset == 0 && p.Next == "" { // it is all there is
			p.Counts = make(map[sandbox.State]int)
			for _, s := range p.Items {
				p.Counts[s.State]++
			}
			return nil
		}
		p.Counts, err = tx.Sandboxes().Count(q)
		return err
	})
	if err != nil {
		return Page{}, err
	}
	for n := range maps.Values(p.Counts) {
		p.Total += n
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range p.Items {
		if b := e.entries[s.ID]; b != nil {
			b.known(s)
		}
	}
	return p, nil
}

// noteActivity has the store know of the uses that memory alone knows of, as far as it takes them: a list by activity is
// of what its rows say.
func (e *Engine) noteActivity(ctx context.Context, project string) error {
	uses := make(map[sandbox.ID]time.Time)
	e.mu.Lock()
	for id, b := range e.entries {
		s, last := b.record.Load(), b.lastUse()
		if s != nil && (project == "" || s.Project == project) && last.At.After(s.LastActivity) {
			uses[id] = last.At
		}
	}
	e.mu.Unlock()
	if len(uses) == 0 || e.core.Store.Room() != nil {
		return nil
	}
	return e.core.Store.Update(ctx, func(tx store.Tx) error {
		for id, at := range uses {
			if err := tx.Sandboxes().Touch(id, at); err != nil {
				return err
			}
		}
		return nil
	})
}
