// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/linux/changes"
)

// TestNobodyIsWokenWhileEventsGather: once the reader knows that there are events, no
// poller of the process listens to the queue until they are read. Each event would wake
// it, at the cost of the sandbox.
func TestNobodyIsWokenWhileEventsGather(t *testing.T) {
	o := newOverlay(t, t.TempDir(), nil)
	g := newGroup(t, changes.Options{})
	s := add(t, g, o)
	if n := listeners(t, g.Queue()); n != 0 {
		t.Fatalf("%d pollers listen to the queue though nobody reads, want none", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	eventually(t, "the reader waits for events", func() bool { return listeners(t, g.Queue()) == 1 })
	tr := track(t, s)
	n := 0
	eventually(t, "it lets them gather", func() bool {
		n++
		write(t, fmt.Sprintf("%s/%d", o.ws, n), "x")
		return listeners(t, g.Queue()) == 0
	})
	eventually(t, "it read them and waits again", func() bool { return listeners(t, g.Queue()) == 1 })
	if got := stop(t, tr); len(got) != n {
		t.Errorf("got %d changes, want %d", len(got), n)
	}
	cancel()
	must(t, <-done)
	if n := listeners(t, g.Queue()); n != 0 {
		t.Errorf("%d pollers listen to the queue after the reader ended, want none", n)
	}
}

// TestAReaderThatCannotWaitGoesOn: where the kernel refuses to tell of events, they are
// looked for, and waited for again when it does.
func TestAReaderThatCannotWaitGoesOn(t *testing.T) {
	var g *changes.Group
	said := make(chan string, 1)
	g = newGroup(t, changes.Options{Logger: slog.New(hook{slog.DiscardHandler, func(text string) {
		g.ListenTo(g.Queue()) // on the reader's own goroutine
		said <- text
	}})})
	g.ListenTo(-1)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- g.Run(ctx) }()
	if text := <-said; !strings.Contains(text, "cannot wait") {
		t.Errorf("it said %q", text)
	}
	eventually(t, "the reader waits for events", func() bool { return listeners(t, g.Queue()) == 1 })
	cancel()
	must(t, <-done)
}

// hook is told what is logged.
type hook struct {
	slog.Handler
	say func(string)
}

func (h hook) Enabled(context.Context, slog.Level) bool { return true }

func (h hook) Handle(_ context.Context, r slog.Record) error {
	h.say(r.Message)
	return nil
}

// listeners counts the epoll instances of this process that a descriptor is in.
func listeners(t *testing.T, fd int) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fdinfo/*")
	must(t, err)
	for _, info := range fds {
		b, err := os.ReadFile(info)
		if err != nil {
			continue // closed meanwhile
		}
		for _, line := range strings.Split(string(b), "\n") {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "tfd:" && f[1] == fmt.Sprint(fd) {
				n++
			}
		}
	}
	return n
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not after 10 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
