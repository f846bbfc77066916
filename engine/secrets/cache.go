// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"sync"
	"sync/atomic"

	"sandpit.dev/internal/seal"
	"sandpit.dev/redact"
	"sandpit.dev/redact/redactlog"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Cache opens secrets and keeps them open.
type Cache struct {
	store   store.Store
	ring    *seal.Ring
	log     *redactlog.Log
	sandbox func(sandbox.ID) *Entry

	mu       sync.Mutex
	projects map[string]*owner // of each project that was asked for
}

// New returns a cache of the secrets in a store, which ring seals. Log is told each value that
// is opened. The caller keeps the entry of each sandbox that is in memory; entry returns
// it, nil for a sandbox that is not.
func New(s store.Store, ring *seal.Ring, log *redactlog.Log, entry func(sandbox.ID) *Entry) *Cache {
	return &Cache{store: s, ring: ring, log: log, sandbox: entry, projects: make(map[string]*owner)}
}

// Entry is what the cache keeps of one sandbox. Its zero value has read nothing.
type Entry struct {
	own owner
	set atomic.Pointer[Set]
}

// Fill enters the own secrets of a new sandbox, which are about to be committed.
func (n *Entry) Fill(own []Secret) { n.own.now.Store(newSet(own)) }

// Invalidate has the sandbox's own secrets read again. It is called after each commit that
// changes them.
func (n *Entry) Invalidate() { n.own.invalidate() }

// Last returns the set that was made last, nil if none was.
func (n *Entry) Last() *Set { return n.set.Load() }

// InvalidateProject is Invalidate for the secrets of a project itself.
func (c *Cache) InvalidateProject(name string) { c.owner(name).invalidate() }

// Of returns what holds for a sandbox.
func (c *Cache) Of(ctx context.Context, project string, id sandbox.ID) (*Set, error) {
	n := c.sandbox(id)
	if n == nil {
		n = &Entry{}
	}
	last := n.set.Load()
	p, err := c.OfProject(ctx, project)
	if err != nil {
		return nil, err
	}
	own, err := n.own.get(func() ([]Secret, error) { return c.Read(ctx, project, id) })
	if err != nil {
		return nil, err
	}
	if last != nil && last.project == p && last.own == own {
		return last, nil
	}
	set := merge(p, own)
	n.set.Store(set)
	return set, nil
}

// OfProject returns the secrets of a project itself.
func (c *Cache) OfProject(ctx context.Context, project string) (*Set, error) {
	return c.owner(project).get(func() ([]Secret, error) { return c.Read(ctx, project, "") })
}

// Read reads and opens the secrets of one owner, whatever is in memory.
func (c *Cache) Read(ctx context.Context, project string, of sandbox.ID) (out []Secret, err error) {
	var sealed []*store.SealedSecret
	err = c.store.View(ctx, func(tx store.Tx) (err error) {
		sealed, err = tx.Secrets().List(project, of)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, s := range sealed {
		o, err := open(c.ring, &s.Secret, s.Sealed)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	c.log.Add(named(out)...)
	return out, nil
}

// Seal returns a secret as it is on record. The log is told its value.
func (c *Cache) Seal(s *sandbox.Secret, value string) *store.SealedSecret {
	c.log.Add(redact.Secret{Name: s.Name, Value: value})
	return c.seal(s, value)
}

func (c *Cache) seal(s *sandbox.Secret, value string) *store.SealedSecret {
	return &store.SealedSecret{Secret: *s, Sealed: c.ring.Seal([]byte(value), binding(s)...)}
}

func (c *Cache) owner(project string) *owner {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.projects[project]
	if o == nil {
		o = &owner{}
		c.projects[project] = o
	}
	return o
}

// kept returns the labels of a sandbox, or of a project itself, whose secrets are in memory
// as they are; else nil.
func (c *Cache) kept(project string, id sandbox.ID) *redact.Labels {
	p := c.owner(project).now.Load()
	if p == nil {
		return nil
	}
	if id == "" {
		return p.Labels
	}
	n := c.sandbox(id)
	if n == nil {
		return nil
	}
	set, own := n.set.Load(), n.own.now.Load()
	switch {
	case own == nil:
		return nil
	case set == nil || set.project != p || set.own != own:
		set = merge(p, own)
		n.set.Store(set)
	}
	return set.Labels
}

// owner keeps the secrets of one owner. Its zero value has read nothing.
type owner struct {
	mu  sync.Mutex
	rev int // counts invalidations
	now atomic.Pointer[Set]
}

// get returns what the owner has, or reads it. What was read while it was invalidated is
// returned and not kept.
func (o *owner) get(read func() ([]Secret, error)) (*Set, error) {
	if s := o.now.Load(); s != nil {
		return s, nil
	}
	o.mu.Lock()
	rev := o.rev
	o.mu.Unlock()
	all, err := read()
	if err != nil {
		return nil, err
	}
	s := newSet(all)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rev != rev {
		return s, nil
	}
	if kept := o.now.Load(); kept != nil { // another was quicker
		return kept, nil
	}
	o.now.Store(s)
	return s, nil
}

func (o *owner) invalidate() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rev++
	o.now.Store(nil)
}
