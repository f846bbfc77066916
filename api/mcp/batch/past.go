// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"context"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/sandbox"
)

// Past finds the run that a task of an earlier server stands for.
func Past(ctx context.Context, c *toolset.Call, task string) (*transport.PastTask, error) {
	id, ok := strings.CutPrefix(task, taskOfRun)
	if !ok {
		return nil, nil
	}
	run, err := c.Runs.Get(ctx, c.Caller, id)
	if err != nil || run.Actor != c.Caller.Actor || run.Via != toolset.Via {
		return nil, err
	}
	t := &transport.PastTask{Created: run.CreatedAt, Updated: started(run), Message: "the run " + run.ID + " is " + string(run.State)}
	t.Stop = func(ctx context.Context) error {
		_, err := c.Runs.Cancel(ctx, c.Caller, id)
		return err
	}
	if !run.State.Ended() {
		return t, nil
	}
	t.Ended, t.Updated, t.Message = run.EndedAt, run.EndedAt, ""
	if run.State == sandbox.RunCanceled {
		t.Cancelled = true
		return t, nil
	}
	streams, err := c.Runs.Streams(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	t.Result = Answer(c, run, streams).Result()
	return t, nil
}
