// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// noted is what was answered of sandboxes whose runtime has parts that end: a call may be refused while one is away, which promises nothing.
type noted struct {
	h *host

	mu        sync.Mutex
	boxes     map[string]*notedBox
	dead      map[string]bool
	snapshots map[string]bool
	broken    int // calls that made no promise
}

// notedBox is one sandbox. One call at a time changes it.
type notedBox struct {
	id    string
	turn  sync.Mutex
	gone  bool              // a delete was asked for
	down  bool              // it was stopped, or not started again
	files map[string]string // content by path
}

func newNoted(h *host) *noted {
	return &noted{h: h, boxes: map[string]*notedBox{}, dead: map[string]bool{}, snapshots: map[string]bool{}}
}

// mostBoxes bounds how many sandboxes there are.
const mostBoxes = 6

// take returns a sandbox that nobody else uses, which is to be given back; nil: there is none.
func (l *noted) take() *notedBox {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.boxes { // in any order
		if !b.gone && b.turn.TryLock() {
			return b
		}
	}
	return nil
}

func (l *noted) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.boxes)
}

// act does one random thing, and notes what was answered. Its error is that of an answer which is none of a part that is away.
func (l *noted) act(ctx context.Context, name string) error {
	b := l.take()
	if b == nil {
		if l.count() >= mostBoxes {
			return l.excused(aMoment(ctx))
		}
		return l.excused(l.create(ctx))
	}
	defer b.turn.Unlock()
	c := l.h.client
	var err error
	switch kind := rand.IntN(20); {
	case b.down:
		if _, err = c.Start(ctx, b.id); err == nil {
			b.down = false
		}
	case kind < 3 && l.count() < mostBoxes:
		err = l.create(ctx)
	case kind < 10:
		var r *v1.ExecResult
		if r, err = c.Exec(ctx, b.id, v1.Exec{Command: new(fmt.Sprintf("echo %s > %s", name, name))}); err == nil && r.ExitCode != nil && *r.ExitCode == 0 {
			b.files[name] = name + "\n"
		}
	case kind < 13:
		if err = c.WriteFile(ctx, b.id, name, strings.NewReader(name), client.WriteOptions{}); err == nil {
			b.files[name] = name
		}
	case kind < 16:
		b.down = true
		_, err = c.Stop(ctx, b.id)
	case kind < 19:
		var s *v1.Snapshot
		if s, err = c.Snapshot(ctx, b.id, v1.CreateSnapshot{Name: new(name)}); err == nil {
			l.mu.Lock()
			l.snapshots[s.ID] = true
			l.mu.Unlock()
		}
	default:
		l.mu.Lock()
		b.gone = true
		l.mu.Unlock()
		if err = c.Delete(ctx, b.id); err == nil {
			l.deleted(b.id)
		}
	}
	return l.excused(err)
}

func (l *noted) create(ctx context.Context) error {
	box, _, err := l.h.client.Create(ctx, v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0)), DiskMB: new(256), CPU: new(0.2), MemoryMB: new(128)})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.boxes[box.ID] = &notedBox{id: box.ID, files: map[string]string{}}
	return nil
}

// deleted notes that a sandbox is.
func (l *noted) deleted(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.boxes, id)
	l.dead[id] = true
}

// aMoment is a call that changes nothing.
func aMoment(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Millisecond):
	}
	return nil
}

// excused drops the error of a call that a part was away for, or that came at another moment than a stop or a start.
func (l *noted) excused(err error) error {
	switch {
	case err == nil:
		return nil
	case unanswered(err), fault.Is(err, fault.Unavailable), fault.Is(err, fault.State), fault.Is(err, fault.Timeout), fault.Is(err, fault.Canceled), fault.Is(err, fault.Exhausted):
		l.mu.Lock()
		defer l.mu.Unlock()
		l.broken++
		return nil
	}
	return err
}

// keptPatience bounds how long the cluster may take to be of use again after a part ended.
const keptPatience = 2 * time.Minute

// kept holds the server to what it answered.
func (l *noted) kept(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keptPatience)
	defer cancel()
	there := map[string]string{}
	for box, err := range l.h.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			return err
		}
		there[box.ID] = box.Status
	}
	for id := range l.dead {
		if there[id] != "" {
			return fmt.Errorf("%s was deleted and is there, %s", id, there[id])
		}
	}
	for id := range there {
		if l.boxes[id] == nil { // its create was not answered; what is there all the same has to be whole
			l.boxes[id] = &notedBox{id: id, files: map[string]string{}}
		}
	}
	var missing error
	g := group{limit: 4}
	for id, b := range maps.Clone(l.boxes) {
		switch {
		case there[id] == "" && b.gone:
			l.deleted(id)
			continue
		case there[id] == "":
			missing = errors.Join(missing, fmt.Errorf("%s was created, and is not there", id))
			continue
		}
		b.down = false
		g.do(func() error {
			err := b.kept(ctx, l.h.client)
			if b.gone && fault.Is(err, fault.NotFound) { // the delete was refused for now, and is done by now
				l.deleted(b.id)
				return nil
			}
			b.gone = false // the delete was never begun, or undone
			return err
		})
	}
	err := errors.Join(missing, g.wait())
	for id := range l.snapshots {
		if _, e := l.h.client.GetSnapshot(ctx, id); e != nil {
			err = errors.Join(err, fmt.Errorf("snapshot %s: %w", id, e))
		}
	}
	return err
}

// kept has the sandbox run, and reads its files.
func (b *notedBox) kept(ctx context.Context, c *client.Client) error {
	for {
		_, err := c.Start(ctx, b.id)
		if err == nil {
			var r *v1.ExecResult
			if r, err = c.Exec(ctx, b.id, v1.Exec{Command: new("echo here")}); err == nil && r.Stdout == "here\n" {
				break
			}
		}
		if err != nil && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.State) && !fault.Is(err, fault.Exhausted) || ctx.Err() != nil {
			return fmt.Errorf("%s does not run again: %w", b.id, errors.Join(err, ctx.Err()))
		}
		_ = aMoment(ctx)
	}
	return readBack(ctx, c, b.id, b.files)
}

// readBack reports the first file of a sandbox that does not have the content which is wanted.
func readBack(ctx context.Context, c *client.Client, id string, files map[string]string) error {
	for path, want := range files {
		f, err := c.ReadFile(ctx, id, path, client.ReadOptions{})
		if err != nil {
			return fmt.Errorf("%s: file %s was written: %w", id, path, err)
		}
		got, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("%s: file %s cannot be read: %w", id, path, err)
		}
		if string(got) != want {
			return fmt.Errorf("%s: file %s has %q, want %q", id, path, got, want)
		}
	}
	return nil
}
