// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// granted is what a sandbox's clients were given beside its files: names of processes, tokens that are good for it
// alone, links to its ports, and answers to requests that have a key.
type granted struct {
	turn   sync.Mutex        // held by who gives or takes tokens and links, so that what is valid after him is known
	tokens map[string]bool   // whether a token is valid, by its secret
	links  map[string]linked // by the link's id
	named  map[string]string // process id by name, of those that run
}

// linked is a link to a port where nothing listens.
type linked struct {
	token string
	valid bool
}

// maxGranted bounds how many tokens, and how many links, are looked at after each kill.
const maxGranted = 6

func newGranted() *granted {
	return &granted{tokens: map[string]bool{}, links: map[string]linked{}, named: map[string]string{}}
}

// act does one random thing and records what was answered. What was not may have happened or not, and nothing is
// known of it then.
func (g *granted) act(ctx context.Context, p *promises, c *client.Client, box, name string) error {
	switch rand.IntN(5) {
	case 0:
		r, err := c.StartProcess(ctx, box, v1.StartProcess{Argv: []string{"sleep", "86000"}, Name: new(name), Labels: map[string]string{"of": "test"}})
		if err == nil {
			p.did(func() { g.named[name] = r.ID() })
		}
		return err
	case 1:
		g.turn.Lock()
		defer g.turn.Unlock()
		t, err := c.CreateSandboxToken(ctx, box, v1.CreateSandboxToken{Name: "a test", Scopes: []string{"read"}})
		if err == nil {
			p.did(func() { keepSome(g.tokens); g.tokens[t.Secret] = true })
		}
		return err
	case 2:
		g.turn.Lock()
		defer g.turn.Unlock()
		err := c.RotateSandboxTokens(ctx, box)
		p.did(func() {
			for secret, valid := range g.tokens {
				if err == nil {
					g.tokens[secret] = false
				} else if valid {
					delete(g.tokens, secret)
				}
			}
		})
		return err
	case 3:
		g.turn.Lock()
		defer g.turn.Unlock()
		l, err := c.CreatePreviewLink(ctx, box, v1.CreatePreviewLink{Port: 8000})
		if err == nil {
			p.did(func() { keepSome(g.links); g.links[l.ID] = linked{l.Token, true} })
		}
		return err
	}
	g.turn.Lock()
	defer g.turn.Unlock()
	id, token := "", ""
	p.did(func() {
		for link, l := range g.links {
			if l.valid {
				id, token = link, l.token
				delete(g.links, link)
				return
			}
		}
	})
	if id == "" {
		return nil
	}
	err := c.RevokePreviewLink(ctx, box, id)
	if err == nil {
		p.did(func() { g.links[id] = linked{token, false} })
	}
	return err
}

// keepSome forgets one where there are as many as are looked at.
func keepSome[T any](m map[string]T) {
	if len(m) < maxGranted {
		return
	}
	for k := range m {
		delete(m, k)
		return
	}
}

// kept holds the server to it: what was given works, what was taken does not.
func (g *granted) kept(ctx context.Context, c *client.Client, h *host, box string) error {
	for name, id := range g.named {
		one, err := c.OpenProcess(box, client.ByName(name)).Get(ctx)
		if err != nil || one.ProcessID != id || one.Status != "running" || one.Labels["of"] != "test" {
			return fmt.Errorf("%s: process %q was started as %s, and is %+v, %w", box, name, id, one, err)
		}
		if _, err := c.StartProcess(ctx, box, v1.StartProcess{Argv: []string{"true"}, Name: new(name)}); !fault.Is(err, fault.Exists) {
			return fmt.Errorf("%s: a second process %q: %w", box, name, err)
		}
	}
	for secret, valid := range g.tokens {
		one, err := client.New(h.url, secret, client.Options{HTTP: h.http}).Get(ctx, box)
		switch {
		case valid && (err != nil || one.ID != box):
			return fmt.Errorf("%s: its token is valid, and is answered with %w", box, err)
		case !valid && !fault.Is(err, fault.Unauthenticated):
			return fmt.Errorf("%s: its token was ended, and is answered with %+v, %w", box, one, err)
		}
	}
	links, err := c.PreviewLinks(ctx, box)
	if err != nil {
		return fmt.Errorf("%s: its links: %w", box, err)
	}
	for id, l := range g.links {
		if there := slices.ContainsFunc(links, func(l v1.PreviewLink) bool { return l.ID == id }); there != l.valid {
			return fmt.Errorf("%s: that link %s is there is %t, want %t", box, id, there, l.valid)
		}
		want := http.StatusUnauthorized
		if l.valid {
			want = http.StatusBadGateway // it reaches the sandbox, where nothing listens
		}
		if got, err := h.open(ctx, "8000-"+l.token+".localhost"); err != nil || got != want {
			return fmt.Errorf("%s: the link %s is answered by %d, %w, want %d", box, id, got, err, want)
		}
	}
	return nil
}

// open asks for the page of a preview's host, and returns the status.
func (h *host) open(ctx context.Context, name string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url, nil)
	if err != nil {
		return 0, err
	}
	req.Host = name
	resp, err := h.http.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// maxKeyed bounds how old a key gets: a project has 10,000, the client gives one to each request that begins something,
// and the oldest go first.
const maxKeyed = 64

// keyed are creates that were sent with an idempotency key, and answered: the sandbox's id by the key.
type keyed map[string]string

// create sends one of a new key, or one of a known key again, which has to be answered as before: then it returns nil.
func (k keyed) create(ctx context.Context, p *promises, c *client.Client, name string) (*v1.Sandbox, error) {
	key, before := "k-"+name, ""
	p.did(func() {
		if known := slices.Collect(maps.Keys(k)); len(known) > 0 && rand.IntN(2) == 0 {
			key = known[rand.IntN(len(known))]
			before = k[key]
		}
	})
	box, _, err := c.Create(client.WithIdempotencyKey(ctx, key), v1.CreateSandbox{
		IdleTimeoutSeconds: new(int64(0)), Metadata: map[string]string{"key": key},
	})
	switch {
	case err == nil && before != "" && box.ID != before:
		return nil, fmt.Errorf("the key %s made %s, and now %s", key, before, box.ID)
	case before != "" && fault.Is(err, fault.NotFound):
		p.did(func() { delete(k, key) })
		return nil, nil // it was deleted since
	case before != "" && fault.Is(err, fault.Conflict):
		return nil, nil // another client sends it at this moment
	case err != nil || before != "":
		return nil, err
	}
	p.did(func() {
		if len(k) >= maxKeyed {
			clear(k)
		}
		k[key] = box.ID
	})
	return box, nil
}
