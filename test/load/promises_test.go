// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// promises is what a server answered, and so has to keep whatever becomes of it.
type promises struct {
	mu    sync.Mutex
	boxes map[string]*promised
	dead  map[string]bool // deleted, by an answer of 204
	keyed keyed
	h     *host // of the server that runs now
}

// promised is one sandbox that a 201 was answered for.
type promised struct {
	id       string
	leaving  bool              // a delete was asked for, and may have happened or not
	commands map[string]int    // exit code by process id, of those that were answered
	started  map[string]birth  // of those that run in the background
	files    map[string]string // content by path, of writes that were answered
	granted  *granted
}

// birth identifies a process: its number inside, and when it began.
type birth struct {
	pid   int
	ticks string
}

func newPromises(h *host) *promises {
	return &promises{boxes: map[string]*promised{}, dead: map[string]bool{}, keyed: keyed{}, h: h}
}

// made records a sandbox.
func (p *promises) made(id string) {
	p.did(func() {
		p.boxes[id] = &promised{id: id, commands: map[string]int{}, started: map[string]birth{}, files: map[string]string{}, granted: newGranted()}
	})
}

// some returns one that no delete was asked for, or nil.
func (p *promises) some() *promised {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for id, b := range p.boxes {
		if !b.leaving {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return p.boxes[ids[rand.IntN(len(ids))]]
}

// did records what was answered.
func (p *promises) did(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
}

// act does one random thing, records what was answered, and reports whether an answer came. Its
// error is that of an answer.
func (p *promises) act(ctx context.Context, c *client.Client, name string) (answered bool, err error) {
	b := p.some()
	kind := rand.IntN(14)
	if b == nil {
		kind = 0
	}
	switch {
	case kind < 2:
		var box *v1.Sandbox
		if box, err = p.keyed.create(ctx, p, c, name); err == nil && box != nil {
			p.made(box.ID)
		}
	case kind < 6:
		want := rand.IntN(200)
		var r *v1.ExecResult
		if r, err = c.Exec(ctx, b.id, v1.Exec{Command: new(fmt.Sprintf("echo %s > by-command; exit %d", name, want))}); err == nil {
			if r.ExitCode == nil || *r.ExitCode != want {
				// A delete may have been asked for in between.
				return true, p.unlessLeaving(b, fmt.Errorf("%s: got %s, cause %q, want exit code %d", b.id, code(r.ExitCode), r.Cause, want))
			}
			p.did(func() { b.commands[r.ProcessID] = want })
		}
	case kind < 8:
		if err = c.WriteFile(ctx, b.id, name, strings.NewReader(name), client.WriteOptions{}); err == nil {
			p.did(func() { b.files[name] = name })
		}
	case kind < 9:
		var r *v1.ExecResult
		if r, err = c.Exec(ctx, b.id, v1.Exec{Argv: []string{"sleep", "86000"}, TimeoutSeconds: new(86000.0), WaitSeconds: new(0.0)}); err == nil {
			err = p.follow(ctx, c, b, r.ProcessID)
		}
	case kind < 13:
		err = b.granted.act(ctx, p, c, b.id, name)
	default:
		p.did(func() { b.leaving = true })
		if err = c.Delete(ctx, b.id); err == nil {
			p.did(func() { delete(p.boxes, b.id); p.dead[b.id] = true })
		}
	}
	if unanswered(err) {
		return false, nil
	}
	return true, p.unlessLeaving(b, err)
}

// follow notes who a background command is.
func (p *promises) follow(ctx context.Context, c *client.Client, b *promised, id string) error {
	one, err := c.Process(ctx, b.id, id)
	if err != nil {
		return err
	}
	ticks, err := bornAt(ctx, c, b.id, one.PID)
	if err != nil {
		return err
	}
	p.did(func() { b.started[id] = birth{one.PID, ticks} })
	return nil
}

// bornAt reads inside when a process began.
func bornAt(ctx context.Context, c *client.Client, ref string, pid int) (string, error) {
	r, err := c.Exec(ctx, ref, v1.Exec{Command: new(fmt.Sprintf("cut -d' ' -f2,22 /proc/%d/stat", pid))})
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(r.Stdout, "(sleep) ") {
		return "", fmt.Errorf("%s: process %d is %q, %s", ref, pid, r.Stdout, r.Stderr)
	}
	return r.Stdout, nil
}

// unlessLeaving drops the error of a sandbox that somebody is deleting.
func (p *promises) unlessLeaving(b *promised, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || b != nil && b.leaving {
		return nil
	}
	return err
}

// unanswered reports whether err says that no answer came.
func unanswered(err error) bool {
	if errors.Is(err, context.Canceled) || fault.Is(err, fault.Canceled) {
		return true
	}
	e, ok := errors.AsType[*fault.Error](err)
	return ok && e.Code == fault.Unavailable && (strings.HasPrefix(e.Message, "no server answers") ||
		strings.HasPrefix(e.Message, "the connection to") || strings.HasPrefix(e.Message, "the server's answer to"))
}

// kept checks that the server keeps all that was answered, and returns what it broke.
func (p *promises) kept(ctx context.Context, c *client.Client) error {
	there := map[string]string{}
	for box, err := range c.List(ctx, client.ListQuery{}) {
		if err != nil {
			return err
		}
		there[box.ID] = box.Status
	}
	g := group{limit: 4}
	for _, id := range slices.Sorted(maps.Keys(there)) {
		if p.dead[id] {
			g.do(func() error { return fmt.Errorf("%s was deleted and is there, %s", id, there[id]) })
		}
		// Whatever was meant when the server died has been finished or undone.
		if s := there[id]; s != "running" && s != "stopped" {
			g.do(func() error { return fmt.Errorf("%s is %s after a restart", id, s) })
		} else if p.boxes[id] == nil && s == "running" {
			// Its create was not answered; what is there all the same has to be whole.
			g.do(func() error { return (&promised{id: id, granted: newGranted()}).kept(ctx, c, p.h) })
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.boxes)) {
		b := p.boxes[id]
		if b.leaving {
			if there[id] == "" {
				delete(p.boxes, id)
				p.dead[id] = true
			} else {
				b.leaving = false // the delete was never begun, or undone
			}
		}
		if p.boxes[id] == nil {
			continue
		}
		if there[id] != "running" {
			g.do(func() error { return fmt.Errorf("%s was created, and is %q", id, there[id]) })
			continue
		}
		g.do(func() error { return b.kept(ctx, c, p.h) })
	}
	return g.wait()
}

// kept holds the server to what it answered of one sandbox.
func (b *promised) kept(ctx context.Context, c *client.Client, h *host) error {
	r, err := c.Exec(ctx, b.id, v1.Exec{Command: new("echo here")})
	if err != nil || r.Stdout != "here\n" {
		return fmt.Errorf("%s does not answer: %+v, %w", b.id, r, err)
	}
	rows := map[string]*v1.Event{}
	for e, err := range c.Activity(ctx, b.id, client.ActivityQuery{Types: []string{"exec"}}) {
		if err != nil {
			return fmt.Errorf("the activity of %s: %w", b.id, err)
		}
		rows[e.ProcessID] = e
	}
	for id, want := range b.commands {
		e := rows[id]
		if e == nil || e.ExitCode == nil || *e.ExitCode != want {
			return fmt.Errorf("%s: of command %s, answered with %d, the activity has %+v", b.id, id, want, e)
		}
	}
	for id, want := range b.started {
		one, err := c.Process(ctx, b.id, id)
		if err != nil {
			return fmt.Errorf("%s: background command %s: %w", b.id, id, err)
		}
		if one.Status != "running" || one.PID != want.pid {
			return fmt.Errorf("%s: background command %s is %s as %d, cause %q; it was running as %d", b.id, id, one.Status, one.PID, one.Cause, want.pid)
		}
		if ticks, err := bornAt(ctx, c, b.id, one.PID); err != nil || ticks != want.ticks {
			return fmt.Errorf("%s: background command %s began at %q, %w; want %q", b.id, id, ticks, err, want.ticks)
		}
		if rows[id] == nil {
			return fmt.Errorf("%s: background command %s is not in the activity", b.id, id)
		}
	}
	if err := readBack(ctx, c, b.id, b.files); err != nil {
		return err
	}
	return b.granted.kept(ctx, c, h, b.id)
}
