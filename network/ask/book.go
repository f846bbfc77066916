// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package ask keeps what was asked for sandboxes' networks until a person grants or denies it.
//
// A [Desk] stands above the engine, of whose verbs it is made. Its words are a stranger's: they come from a program that may have read anything. They are bounded,
// and whoever shows them shows them as text.
package ask

import (
	"slices"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of requests.
const (
	MaxPending = 16             // of a sandbox
	MaxProject = 256            // of all sandboxes of a project
	Keep       = 24 * time.Hour // how long one waits for an answer
	MaxWhy     = 200            // bytes of the words why
)

// Request is hosts that a sandbox is to reach besides those that it may.
type Request struct {
	ID      string
	Sandbox sandbox.ID
	Ref     string // the sandbox's key, else its id
	Project string
	Presets []string
	Domains []string
	Names   []sandbox.PresetDomain // what the presets stood for when it was asked
	Why     string
	Actor   string // the token that asked
	At      time.Time
	Until   time.Time // it is forgotten then
}

// Book is the requests that wait for an answer, as the store has them. Its zero value is empty. It is safe
// for concurrent use.
type Book struct {
	mu  sync.Mutex
	all map[sandbox.ID][]Request
}

// Add keeps a request, and returns it with its id and clocks. One that waits already, of the same
// hosts, is returned in its place, and added is false.
func (b *Book) Add(r Request, now time.Time) (kept Request, added bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(now)
	of := b.all[r.Sandbox]
	for _, o := range of {
		if slices.Equal(o.Presets, r.Presets) && slices.Equal(o.Domains, r.Domains) {
			return o, false, nil
		}
	}
	if len(of) >= MaxPending {
		return Request{}, false, fault.New(fault.Exhausted, "%d requests for the network of the sandbox %s wait for an answer, which is the most", len(of), r.Ref).
			WithRemedy("ask the user to answer them: sandpit network requests %s", r.Ref)
	}
	if n := b.count(r.Project); n >= MaxProject {
		return Request{}, false, fault.New(fault.Exhausted, "%d requests for networks wait for an answer in the project, which is the most", n).
			WithRemedy("ask the user to answer them: sandpit network requests")
	}
	r.ID, r.Why, r.At, r.Until = sandbox.NewProcessID(), sandbox.Clip(r.Why, MaxWhy), now, now.Add(Keep)
	if b.all == nil {
		b.all = make(map[sandbox.ID][]Request)
	}
	b.all[r.Sandbox] = append(of, r)
	return r, true, nil
}

// Put enters requests as they are: of the store, or one whose answer could not be recorded.
func (b *Book) Put(all ...Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = make(map[sandbox.ID][]Request)
	}
	for _, r := range all {
		b.all[r.Sandbox] = append(b.all[r.Sandbox], r)
	}
}

// List returns the requests of a project that wait, the oldest first; of is the sandbox that is meant,
// "" for all.
func (b *Book) List(project string, of sandbox.ID, now time.Time) []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(now)
	var out []Request
	for id, all := range b.all {
		for _, r := range all {
			if r.Project == project && (of == "" || of == id) {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(x, y Request) int { return x.At.Compare(y.At) })
	return out
}

// Get returns the request of an id, or fault.NotFound.
func (b *Book) Get(project, id string, now time.Time) (Request, error) {
	for _, r := range b.List(project, "", now) {
		if r.ID == id {
			return r, nil
		}
	}
	return Request{}, fault.New(fault.NotFound, "no request for a network with the id %q waits for an answer", sandbox.Clip(id, 40)).
		WithRemedy("list those that wait: sandpit network requests; each is kept for a day")
}

// Full reports whether no more requests of a project can wait.
func (b *Book) Full(project string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count(project) >= MaxProject
}

// count returns how many requests of a project wait.
func (b *Book) count(project string) (n int) {
	for _, of := range b.all {
		if of[0].Project == project { // a sandbox is of one project
			n += len(of)
		}
	}
	return n
}

// Remove forgets a request that was answered, and reports whether it waited.
func (b *Book) Remove(r Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.all[r.Sandbox])
	b.keep(r.Sandbox, func(o Request) bool { return o.ID != r.ID })
	return len(b.all[r.Sandbox]) < before
}

// Forget forgets the requests of a sandbox that is gone.
func (b *Book) Forget(of sandbox.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, of)
}

// sweep forgets what has waited too long.
func (b *Book) sweep(now time.Time) {
	for id := range b.all {
		b.keep(id, func(r Request) bool { return now.Before(r.Until) })
	}
}

func (b *Book) keep(of sandbox.ID, wanted func(Request) bool) {
	kept := slices.DeleteFunc(slices.Clone(b.all[of]), func(r Request) bool { return !wanted(r) })
	if len(kept) == 0 {
		delete(b.all, of)
		return
	}
	b.all[of] = kept
}
