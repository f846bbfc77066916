// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sandpit.dev/internal/leaktest"
)

// answers are what a server has answered to clients by a wire, and so has to keep, with a B for each sandbox.
type answers[B interface{ common() *replied }] struct {
	wire *wire
	most int // sandboxes

	mu    sync.Mutex
	boxes map[string]B
	dead  map[string]bool // sandboxes that a delete was answered for
	calls int             // that were answered
	many  int             // of those, too many at once
	kinds map[string]int
}

// replied is what was answered about one sandbox by any wire.
type replied struct {
	id      string
	leaving bool              // a delete was asked for, and may have happened or not
	files   map[string]string // by path
	noFiles []string          // that were deleted
}

func newReplied(id string) replied { return replied{id: id, files: make(map[string]string)} }

func (r *replied) common() *replied { return r }

func newAnswers[B interface{ common() *replied }](w *wire, most int) answers[B] {
	return answers[B]{wire: w, most: most, boxes: make(map[string]B), dead: make(map[string]bool), kinds: make(map[string]int)}
}

// did records what was answered.
func (a *answers[B]) did(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fn()
}

func (a *answers[B]) created(b B) { a.did(func() { a.boxes[b.common().id] = b }) }

func (a *answers[B]) deleted(id string) { a.did(func() { delete(a.boxes, id); a.dead[id] = true }) }

// some returns a sandbox that no delete was asked for; nil where a new one is to be made.
func (a *answers[B]) some() (none B) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []B
	for _, id := range slices.Sorted(maps.Keys(a.boxes)) {
		if b := a.boxes[id]; !b.common().leaving {
			all = append(all, b)
		}
	}
	if len(all) == 0 || len(all) < a.most && rand.IntN(4) == 0 {
		return none
	}
	return all[rand.IntN(len(all))]
}

// counted counts an answer, and leaves errors out that are none of the server's; b is nil for a create.
func (a *answers[B]) counted(kind string, b *replied, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, gone := errors.AsType[broken](err); gone || errors.Is(err, context.Canceled) {
		return broken{err}
	}
	a.calls++
	r, refused := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		a.kinds[kind]++
		return nil
	case refused && (r.status == http.StatusTooManyRequests || strings.Contains(r.body, "fleet_full_retry")):
		a.many++
		return nil
	case b != nil && b.leaving && (!refused || r.status < 500):
		return nil
	}
	return fmt.Errorf("%s: %w", kind, err)
}

// warmed has a server answer a few things by a wire and delete all sandboxes, and returns what it holds then.
func (h *host) warmed(ctx context.Context, w *wire, act func(ctx context.Context, name string) error) leaktest.Snapshot {
	h.t.Helper()
	for n := range 20 {
		if err := act(ctx, fmt.Sprint("warm-", n)); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := h.deleteAll(ctx); err != nil {
		h.t.Fatal(err)
	}
	w.http.CloseIdleConnections()
	return h.rest()
}

// looks are how a server is held to its answers about a sandbox by a wire.
type looks[B any] struct {
	works func(id string) error // of one whose create was not answered
	kept  func(b B) error
	gone  func(id string) error // of one that was deleted
}

// held holds a server that was started again to all that was answered. There are the states of its sandboxes, and up is that of
// one that runs.
func (a *answers[B]) held(there map[string]string, up string, l looks[B]) error {
	g := group{limit: 8}
	for _, id := range slices.Sorted(maps.Keys(there)) {
		_, answered := a.boxes[id]
		switch state := there[id]; {
		case a.dead[id]:
			g.do(func() error { return fmt.Errorf("%s was deleted, and is %s", id, state) })
		case state != up:
			g.do(func() error { return fmt.Errorf("%s is %s after a restart", id, state) })
		case !answered: // what is there is whole
			g.do(func() error { return l.works(id) })
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.boxes)) {
		b := a.boxes[id]
		if b.common().leaving && there[id] == "" {
			delete(a.boxes, id)
			a.dead[id] = true
			continue
		}
		b.common().leaving = false // the delete was not begun
		g.do(func() error {
			if there[id] == "" {
				return fmt.Errorf("%s was created, and is not there", id)
			}
			if err := l.kept(b); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			return nil
		})
	}
	for _, id := range slices.Sorted(maps.Keys(a.dead)) {
		g.do(func() error {
			if err := l.gone(id); err != nil {
				return fmt.Errorf("%s was deleted, and a get says %w", id, err)
			}
			return nil
		})
	}
	return g.wait()
}

// notFound reports whether err says of what is asked for that it is not there.
func notFound(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusNotFound
}

// unlessMissing returns what is wrong where missing does not report of err, that of a get, that there is nothing.
func unlessMissing(err error, missing func(error) bool) error {
	switch {
	case err == nil:
		return errors.New("that it is there")
	case missing(err):
		return nil
	}
	return err
}
