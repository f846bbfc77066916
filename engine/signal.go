// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"syscall"
	"time"

	"sandpit.dev/engine/core"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/rows"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// sending notes that the user sends a signal to a process, and has send do it. The note is committed first, so that
// no crash leaves a process that ended by a signal of nobody's: at most the row of one that goes on says who wanted its
// end. Where the process had ended already the note is taken back. Records that cannot be written keep nobody from it.
func (u *Use) sending(ctx context.Context, processID string, sig syscall.Signal, send func() error) error {
	if !process.Ends(sig) {
		return send()
	}
	s := sandbox.Signaled{By: u.who.Name, With: process.SignalName(sig)}
	var was sandbox.Signaled
	var noted bool
	err := u.e.core.Store.Update(ctx, func(tx store.Tx) (err error) {
		was, noted, err = tx.Events().Signal(u.b.id, processID, s)
		return err
	})
	if err != nil {
		u.e.core.Log.Error("who sends a signal cannot be recorded", "sandbox", u.b.id, "process", processID, "by", s.By, "error", err)
	}
	if noted {
		u.l.signals.Sent(processID, s)
	}
	u.e.core.Checkpoint("signal.noted")
	err = send()
	u.e.core.Checkpoint("signal.sent")
	if noted && (fault.Is(err, fault.State) || fault.Is(err, fault.NotFound)) {
		u.l.signals.Sent(processID, was)
		ctx, cancel := core.Aside(ctx)
		defer cancel()
		undone := u.e.core.Store.Update(ctx, func(tx store.Tx) error { return tx.Events().Unsignal(u.b.id, processID, s, was) })
		if undone != nil {
			u.e.core.Log.Error("a process had ended before its signal, and its record says that it was sent one", "sandbox", u.b.id, "process", processID, "error", undone)
		}
	}
	return err
}

// Ending notes that the user kills all that runs in a context or a shell; with an empty id, in the sandbox.
func (u *Use) Ending(ctx context.Context, contextID string) {
	u.e.ending(ctx, u.b, u.l, u.who, contextID)
}

// Ending is Use.Ending for a sandbox that need not be up.
func (v *Visit) Ending(ctx context.Context, contextID string) {
	if l := v.b.standing(); l != nil {
		v.e.ending(ctx, v.b, l, v.who, contextID)
	}
}

func (e *Engine) ending(ctx context.Context, b *entry, l *session, who core.Actor, contextID string) {
	s := killedBy(who)
	var ids []string
	err := e.core.Store.Update(ctx, func(tx store.Tx) (err error) {
		ids, err = rows.SignalAll(tx, b.id, contextID, s)
		return err
	})
	if err != nil {
		e.core.Log.Error("who kills what runs in a sandbox cannot be recorded", "sandbox", b.id, "by", s.By, "error", err)
		return
	}
	for _, id := range ids {
		l.signals.Sent(id, s)
	}
}

func killedBy(who core.Actor) sandbox.Signaled {
	return sandbox.Signaled{By: who.Name, With: process.SignalName(syscall.SIGKILL)}
}

// stoppedBy is how a sandbox's processes are ended that have a grace.
func stoppedBy(who core.Actor, grace time.Duration) sandbox.Signaled {
	s := killedBy(who)
	if grace > 0 {
		s.With = process.SignalName(syscall.SIGTERM)
	}
	return s
}
