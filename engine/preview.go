// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Bounds of how long a link to a preview is good.
const (
	MinPreview     = time.Second
	MaxPreview     = 30 * 24 * time.Hour
	DefaultPreview = time.Hour
)

// Preview is the right to see one port of one sandbox for a while. What proves
// it, a signed link, is not the engine's.
type Preview struct {
	Link      string // the link's id, for the record
	Sandbox   sandbox.ID
	Project   string
	Port      int
	ExpiresAt time.Time // in whole seconds
}

// CreatePreview lets whoever holds the link that will be made of it see a port,
// and records that. Nothing needs to listen there yet, nor the sandbox to run.
// Zero expires is DefaultPreview. Deleting the sandbox takes it back.
func (e *Engine) CreatePreview(ctx context.Context, c access.Caller, ref string, port int, expires time.Duration) (Preview, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Preview{}, err
	}
	if expires == 0 {
		expires = DefaultPreview
	}
	var k check.Fields
	k.Port("port", port)
	if expires < MinPreview || expires > MaxPreview {
		k.Bad("expires_seconds", "%v is outside %v to %v seconds", expires.Seconds(), MinPreview.Seconds(), MaxPreview.Seconds())
	}
	if err := k.Err(); err != nil {
		return Preview{}, err
	}
	b, err := e.visit(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return Preview{}, err
	}
	defer e.leave(b)
	if err := e.store.Room(); err != nil {
		return Preview{}, err
	}
	b.touch(e.now(), actCall)
	s := b.record.Load()
	if s == nil {
		return Preview{}, core.NoSandbox(ref)
	}
	at := e.now()
	p := Preview{
		Link: sandbox.NewProcessID(), Sandbox: s.ID, Project: s.Project, Port: port,
		ExpiresAt: at.Add(expires + time.Second - 1).Truncate(time.Second),
	}
	ev := core.ActorOf(c).Event(sandbox.EventPreview, s, at)
	ev.ProcessID = p.Link
	ev.Detail = fmt.Sprintf("link %s to port %d until %s", p.Link, port, p.ExpiresAt.Format(time.RFC3339))
	if err := e.commit(ctx, b, func(*sandbox.Sandbox) {}, ev); err != nil {
		return Preview{}, err
	}
	return p, nil
}

// ReachPreview is what comes before each request to a preview: may the caller,
// is there such a sandbox, is it up; one that idleness stopped is started. It
// counts as a use.
func (e *Engine) ReachPreview(ctx context.Context, c access.Caller, ref string) error {
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actPort)
	if err != nil {
		return err
	}
	u.End()
	return nil
}

// PreviewOpened records that a link was followed, the first time that it is.
func (e *Engine) PreviewOpened(ctx context.Context, c access.Caller, ref, link string, port int) error {
	b, err := e.visit(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer e.leave(b)
	s := b.record.Load()
	if s == nil {
		return core.NoSandbox(ref)
	}
	ev := core.ActorOf(c).Event(sandbox.EventPreviewOpened, s, e.now())
	ev.ProcessID, ev.Detail = link, fmt.Sprintf("link %s to port %d", link, port)
	first := false
	err = e.store.Update(ctx, func(tx store.Tx) error {
		page, _, err := tx.Events().List(store.EventQuery{
			Project: s.Project, Sandbox: s.ID, ProcessID: link, Types: []sandbox.EventType{sandbox.EventPreviewOpened}, Limit: 1,
		})
		if first = err == nil && len(page) == 0; !first {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err == nil && first {
		e.metrics.Happened([]*sandbox.Event{ev})
	}
	return err
}
