// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/engine/events"
)

// gallery is images that a test changes.
type gallery struct {
	mu      sync.Mutex
	all     []events.BuiltImage
	failing int
	looked  int // how often it was listed since it changed
	changed chan struct{}
}

func (g *gallery) list(context.Context) ([]events.BuiltImage, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failing > 0 {
		g.failing--
		return nil, errors.New("the disk is away")
	}
	g.looked++
	return append([]events.BuiltImage(nil), g.all...), nil
}

// set makes pairs of name and digest all that there is.
func (g *gallery) set(pairs ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all, g.looked = nil, 0
	for i := 0; i < len(pairs); i += 2 {
		s := shown{pairs[i], pairs[i+1]}
		g.all = append(g.all, events.BuiltImage{Name: pairs[i], Digest: pairs[i+1], Record: &s})
	}
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func (g *gallery) looks() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.looked
}

// follow runs until the test, or stop, ends it.
func (g *gallery) follow(t *testing.T, l *events.Log) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.FollowImages(ctx, g.list, g.changed) }()
	stop = sync.OnceFunc(func() { cancel(); must(t, <-ended) })
	t.Cleanup(stop)
	return stop
}

func TestImagesThatComeAndGoAreTold(t *testing.T) {
	h := start(t, events.Options{})
	g := &gallery{changed: make(chan struct{}, 1)}
	g.set("python", "sha256:1")
	stop := g.follow(t, h.log)
	// FollowImages says by nothing but events that it has looked, so the events are what is waited for.
	await := func(want ...string) {
		t.Helper()
		var got []string
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if got = lines(h.kept(alice, "image")); len(got) >= len(want) && g.looks() > 0 {
				break
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
	await() // what is there at first is no news
	g.set("python", "sha256:1", "node", "sha256:2")
	all := []string{"image.created node sha256:2 by "}
	await(all...)
	g.set("python", "sha256:3", "node", "sha256:2")
	all = append(all, "image.updated python sha256:3 by ")
	await(all...)
	stop()
	g.set("node", "sha256:2", "debian:12", "sha256:4") // while no server runs
	g.failing = 1
	g.follow(t, h.log)
	all = append(all, "image.deleted python sha256:3 by ", "image.created debian:12 sha256:4 by ")
	await(all...)
	if e := h.kept(alice, "image.deleted")[0]; e.Subject != "python" || e.Project != "" {
		t.Errorf("got %+v", e)
	}
}
