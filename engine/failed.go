// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// missing is what a sandbox needs and its host has no longer. A sandbox that misses
// something is Failed, until it is there again: a store that was put back, an
// image that was built again.
type missing struct {
	what  string
	cause error
}

func (m *missing) Error() string { return m.what }
func (m *missing) Unwrap() error { return m.cause }

func diskGone(err error) *missing { return &missing{"its disk is gone from this host", err} }

// parts finds what a sandbox is started from. The error is a *missing if a part is
// gone for good, as far as can be told.
func (e *Engine) parts(ctx context.Context, s *sandbox.Sandbox) (runtime.Instance, image.Image, error) {
	if s.ImageDigest == "" {
		return nil, image.Image{}, &missing{"its image was not made", nil}
	}
	img, err := e.images.FindDigest(s.Image, s.ImageDigest)
	if fault.Is(err, fault.NotFound) {
		return nil, img, &missing{"its image " + s.Image + " (" + s.ImageDigest + ") is gone from this host", err}
	}
	if err != nil {
		return nil, img, err
	}
	inst, err := e.open(ctx, s)
	if fault.Is(err, fault.NotFound) {
		return nil, img, diskGone(err)
	}
	return inst, img, err
}

// failed commits that a sandbox misses something, and gives the error for whoever
// wanted it up.
func (e *Engine) failed(ctx context.Context, b held, m *missing) error {
	if err := e.fail(ctx, b, m); err != nil {
		return err
	}
	return notUp(b.record.Load())
}

// fail commits that a sandbox misses something.
func (e *Engine) fail(ctx context.Context, b held, m *missing) error {
	s := b.record.Load()
	e.core.Log.Error("a sandbox has failed", "sandbox", b.id, "reason", m.what, "error", m.cause)
	ev := core.System.Event(sandbox.EventFailed, s, e.now())
	ev.OK, ev.Cause, ev.Detail = false, sandbox.CauseHost, m.what
	err := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.StopCause, s.StopDetail = sandbox.Failed, ev.Cause, ev.Detail
		s.UpdatedAt = ev.At
		if s.StoppedAt.IsZero() {
			s.StoppedAt = ev.At
		}
	}, ev)
	if err != nil {
		return err
	}
	if err := e.adoptOrphans(ctx, b); err != nil {
		return err
	}
	e.plan(b.entry)
	return nil
}

// mend makes a sandbox that has failed Stopped again if it misses nothing any more.
func (e *Engine) mend(ctx context.Context, b held) error {
	s := b.record.Load()
	if _, _, err := e.parts(ctx, s); err != nil {
		return err
	}
	ev := core.System.Event(sandbox.EventStopped, s, e.now())
	ev.Cause, ev.Detail = sandbox.CauseHost, "what it missed is there again ("+s.StopDetail+")"
	err := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.StopCause, s.StopDetail = sandbox.Stopped, ev.Cause, ev.Detail
		s.StoppedAt, s.UpdatedAt = ev.At, ev.At
	}, ev)
	if err != nil {
		return err
	}
	e.plan(b.entry)
	return nil
}
