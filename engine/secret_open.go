// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// openSecret is a secret with its value.
type openSecret struct {
	sandbox.Secret
	Value string
}

// secretsOf gives the secrets that hold for a sandbox, by name: its own, and those of
// its project that it has no own ones of the name of. They are kept in memory while the
// sandbox is, so that a command pays neither a read nor a decryption; what it gives is
// shared and must not be changed. A value that cannot be opened, its key being gone, is
// fault.Unavailable, and says which.
func (e *Engine) secretsOf(ctx context.Context, s *sandbox.Sandbox) ([]openSecret, error) {
	set, err := e.secretSet(ctx, s.Project, s.ID)
	if err != nil {
		return nil, err
	}
	return set.all, nil
}

// secretSet is the secrets that hold for one sandbox, and what is made of them. It never
// changes.
type secretSet struct {
	project, own *shelved // what it was made of
	all          []openSecret
	redact       *redactor
	values       [][]byte // of those that are not bound: for the agent to mask
}

// shelved are the open secrets of one owner, by name. It never changes.
type shelved struct {
	all    []openSecret
	redact *redactor
}

func newShelved(all []openSecret) *shelved { return &shelved{all, newRedactor(all)} }

// shelf keeps the open secrets of one owner in memory: of a project itself, or of one
// sandbox. Its zero value has read nothing.
type shelf struct {
	mu   sync.Mutex
	turn int // counts what made it stale
	now  atomic.Pointer[shelved]
}

// get gives what the shelf has, or reads it. What was read while it became stale is
// given and not kept.
func (h *shelf) get(read func() ([]openSecret, error)) (*shelved, error) {
	if s := h.now.Load(); s != nil {
		return s, nil
	}
	h.mu.Lock()
	turn := h.turn
	h.mu.Unlock()
	all, err := read()
	if err != nil {
		return nil, err
	}
	s := newShelved(all)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turn != turn {
		return s, nil
	}
	if kept := h.now.Load(); kept != nil { // another was quicker
		return kept, nil
	}
	h.now.Store(s)
	return s, nil
}

// fill gives the shelf of a new sandbox what is about to be committed.
func (h *shelf) fill(all []openSecret) { h.now.Store(newShelved(all)) }

// stale has the shelf read again. It is called after each commit that changes what the
// shelf keeps.
func (h *shelf) stale() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turn++
	h.now.Store(nil)
}

// secretShelves are what the engine keeps of secrets. Those of a sandbox are in its box.
type secretShelves struct {
	mu       sync.Mutex
	projects map[string]*shelf // of each project that was asked for
}

func (h *secretShelves) project(name string) *shelf {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.projects[name]
	if s == nil {
		s = &shelf{}
		if h.projects == nil {
			h.projects = make(map[string]*shelf)
		}
		h.projects[name] = s
	}
	return s
}

// secretSet gives what holds for a sandbox.
func (e *Engine) secretSet(ctx context.Context, project string, id sandbox.ID) (*secretSet, error) {
	e.mu.Lock()
	b := e.boxes[id]
	e.mu.Unlock()
	own := &shelf{}
	var last *secretSet
	if b != nil {
		own, last = &b.secrets, b.secretSet.Load()
	}
	p, err := e.projectSecrets(ctx, project)
	if err != nil {
		return nil, err
	}
	o, err := own.get(func() ([]openSecret, error) { return e.readSecrets(ctx, project, id) })
	if err != nil {
		return nil, err
	}
	if last != nil && last.project == p && last.own == o {
		return last, nil
	}
	set := newSecretSet(p, o)
	if b != nil {
		b.secretSet.Store(set)
	}
	return set, nil
}

// projectSecrets gives those of a project itself.
func (e *Engine) projectSecrets(ctx context.Context, project string) (*shelved, error) {
	return e.shelves.project(project).get(func() ([]openSecret, error) { return e.readSecrets(ctx, project, "") })
}

func newSecretSet(project, own *shelved) *secretSet {
	set := &secretSet{project: project, own: own, all: slices.Clone(own.all)}
	for _, s := range project.all {
		if !slices.ContainsFunc(own.all, func(o openSecret) bool { return o.Name == s.Name }) {
			set.all = append(set.all, s)
		}
	}
	slices.SortFunc(set.all, func(a, b openSecret) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range set.all {
		if !s.Bound() {
			set.values = append(set.values, []byte(s.Value))
		}
	}
	set.redact = newRedactor(set.all)
	return set
}

// readSecrets reads and opens those of one owner.
func (e *Engine) readSecrets(ctx context.Context, project string, of sandbox.ID) (out []openSecret, err error) {
	var sealed []*store.SealedSecret
	err = e.store.View(ctx, func(tx store.Tx) (err error) {
		sealed, err = tx.Secrets().List(project, of)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, s := range sealed {
		o, err := e.unseal(s)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	e.logHush.hide(out)
	return out, nil
}

func (e *Engine) unseal(s *store.SealedSecret) (openSecret, error) {
	value, err := e.ring.Open(s.Sealed, secretBind(&s.Secret)...)
	if err == nil {
		return openSecret{s.Secret, string(value)}, nil
	}
	return openSecret{}, sealedShut(&s.Secret, err)
}

// sealedShut explains why a value does not open.
func sealedShut(s *sandbox.Secret, err error) error {
	if gone, ok := errors.AsType[*seal.KeyGoneError](err); ok {
		return fault.Wrap(fault.Unavailable, err, "the secret %s was sealed by the key %s, which this server does not have", s.Name, gone.ID).
			WithRemedy("put that key back into the server's key file (secrets.key_file), below the one that is there; or set or delete the secret")
	}
	return fault.Wrap(fault.Unavailable, err, "the secret %s on record does not open: it was changed, or is another's", s.Name).
		WithRemedy("set it again, or delete it")
}

// secretBind is what the sealed value of a secret is bound to.
func secretBind(s *sandbox.Secret) []string {
	return []string{"secret", s.Project, string(s.Sandbox), s.Name}
}
