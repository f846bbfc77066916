// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
)

// Bounds of how long a link to a preview is good.
const (
	MinPreview     = time.Second
	MaxPreview     = 30 * 24 * time.Hour
	DefaultPreview = time.Hour
)

// Preview is the right to see one port of one sandbox for a while. What proves
// it, a signed link, is made elsewhere.
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
func (s *Service) CreatePreview(ctx context.Context, c access.Caller, ref string, port int, expires time.Duration) (Preview, error) {
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
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return Preview{}, err
	}
	defer v.Leave()
	if err := s.engine.Store().Room(); err != nil {
		return Preview{}, err
	}
	v.Touch(useCall)
	ev, err := v.NewEvent(sandbox.EventPreview)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{
		Link: sandbox.NewProcessID(), Sandbox: ev.Sandbox, Project: ev.Project, Port: port,
		ExpiresAt: ev.At.Add(expires + time.Second - 1).Truncate(time.Second),
	}
	ev.ProcessID = p.Link
	ev.Detail = fmt.Sprintf("link %s to port %d until %s", p.Link, port, p.ExpiresAt.Format(time.RFC3339))
	if err := v.Record(ctx, ev); err != nil {
		return Preview{}, err
	}
	return p, nil
}

// ReachPreview is what comes before each request to a preview: may the caller,
// is there such a sandbox, is it up; one that idleness stopped is started. It
// counts as a use.
func (s *Service) ReachPreview(ctx context.Context, c access.Caller, ref string) error {
	c = c.Inside()
	u, err := s.engine.UseUnrecorded(ctx, c, access.SandboxesPorts, ref, useTraffic)
	if err != nil {
		return err
	}
	u.End()
	return nil
}

// PreviewOpened records that a link was followed, the first time that it is.
func (s *Service) PreviewOpened(ctx context.Context, c access.Caller, ref, link string, port int) error {
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer v.Leave()
	ev, err := v.NewEvent(sandbox.EventPreviewOpened)
	if err != nil {
		return err
	}
	ev.ProcessID, ev.Detail = link, fmt.Sprintf("link %s to port %d", link, port)
	return v.RecordFirst(ctx, ev)
}
