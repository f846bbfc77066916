// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/engine/sudo"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// maySudo refuses sudo where nothing runs as root, or where the runtime cannot.
func (e *Engine) maySudo(ctx context.Context, runtimeName string, on *bool) error {
	if on == nil || !*on {
		return nil
	}
	if e.settings.Load().ForbidRoot {
		return fault.New(fault.Denied, "sudo: this server does not let anything act as root in its sandboxes").
			WithRemedy("leave sudo out, or have the server's allow_root set")
	}
	caps, err := e.capabilities(ctx, runtimeName)
	if err != nil {
		return err
	}
	if why, known := caps[runtime.Sudo]; why != nil || !known {
		return e.cannot(ctx, runtimeName, runtime.Sudo, "run commands by sudo")
	}
	return nil
}

// sudoDiffers reports whether the agent of a sandbox that is up was told something else of sudo than its record
// and the settings say.
func (e *Engine) sudoDiffers(l *session, s *sandbox.Sandbox) bool {
	return s != nil && l.sudo.Differs(sudo.Policy(s.Sudo, e.settings.Load().ForbidRoot))
}

// tellSudo tells it.
func (e *Engine) tellSudo(ctx context.Context, b *entry, l *session) error {
	return l.sudo.Tell(ctx, l.client, func() string {
		s := b.record.Load()
		return sudo.Policy(s != nil && s.Sudo, e.settings.Load().ForbidRoot)
	})
}

// retellSudo is tellSudo for a sandbox that runs already, beside whatever verb has its turn: an agent that is silent
// holds up none. What fails is tried again, and its commands are refused until then.
func (e *Engine) retellSudo(b held, l *session) {
	if l.pauses.Paused() || !e.sudoDiffers(l, b.record.Load()) {
		return
	}
	e.retain(b.entry)
	e.group.Spawn(func(ctx context.Context) {
		defer e.release(b.entry)
		if err := e.tellSudo(ctx, b.entry, l); err != nil && ctx.Err() == nil && b.standing() == l {
			e.core.Log.Warn("the agent of a sandbox cannot be told of its sudo; it is tried again", "sandbox", b.id, "error", err)
			e.later(b.entry)
		}
	})
}
