// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/engine/core"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// checkpointBound bounds a checkpoint, which the answer to a command waits for.
const checkpointBound = time.Minute

// KeepChanges takes a checkpoint after a command, where the sandbox wants them and
// the command changed a file, or may have. It gives the snapshot's id, or none: a
// checkpoint that cannot be taken is logged, and an event, and no command fails by it.
func (u *Use) KeepChanges(ctx context.Context, after *sandbox.Event, changes int, complete bool) sandbox.ID {
	s := u.b.record.Load()
	if s == nil || s.Checkpoints != sandbox.CheckpointsCommand || complete && changes == 0 || u.isDown() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkpointBound)
	defer cancel()
	e := u.e
	snap, err := u.checkpoint(ctx, after)
	if err != nil {
		e.core.Log.Error("the checkpoint after a command cannot be taken", "sandbox", u.b.id, "process", after.ProcessID, "error", err)
		ev := u.who.Event(sandbox.EventFailed, s, e.now())
		ev.OK, ev.Detail = false, fmt.Sprintf("checkpoint after the command %s: %s", after.ProcessID, core.Reason(err))
		if dbErr := e.core.Store.Update(ctx, func(tx store.Tx) error { return tx.Events().Append(ev) }); dbErr == nil {
			e.core.Metrics.Happened([]*sandbox.Event{ev})
		}
		return ""
	}
	if snap == nil {
		return ""
	}
	return snap.ID
}

func (u *Use) isDown() bool {
	select {
	case <-u.l.down:
		return true
	default:
		return false
	}
}

// checkpoint takes one in the sandbox's turn. Where the sandbox went down before,
// there is none: its disk may be another by then.
func (u *Use) checkpoint(ctx context.Context, after *sandbox.Event) (*sandbox.Snapshot, error) {
	own, err := u.e.take(ctx, u.b)
	if err != nil {
		return nil, err
	}
	defer own.release()
	if u.b.record.Load() == nil || u.isDown() {
		return nil, nil
	}
	line, _, _ := strings.Cut(after.Command, "\n")
	snap, err := u.e.takeSnapshot(ctx, own, u.who, snapshot.Options{
		Auto: true, Detail: fmt.Sprintf("after the command %s: %s", after.ProcessID, sandbox.Clip(line, 80)),
	})
	return snap, err
}
