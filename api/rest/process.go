// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/agent"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

type byProcess struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	ID  string `path:"pid" doc:"the process_id of the command"`
}

func (a *API) listProcesses(ctx context.Context, c *call, in *byRef) (v1.ProcessList, error) {
	records, err := a.engine.Processes(ctx, c.caller, in.Ref)
	if err != nil {
		return v1.ProcessList{}, err
	}
	out := v1.ProcessList{Items: make([]v1.Process, 0, len(records))}
	for _, r := range records {
		out.Items = append(out.Items, processOf(r))
	}
	return out, nil
}

func (a *API) getProcess(ctx context.Context, c *call, in *byProcess) (v1.Process, error) {
	r, err := a.engine.Process(ctx, c.caller, in.Ref, in.ID)
	if err != nil {
		return v1.Process{}, err
	}
	return processOf(r), nil
}

func (a *API) killProcess(ctx context.Context, c *call, in *byProcess) (none, error) {
	return none{}, a.engine.KillProcess(ctx, c.caller, in.Ref, in.ID)
}

func processOf(r agent.Record) v1.Process {
	p := v1.Process{
		ProcessID: r.ID, Status: "running", Command: r.Shell, Argv: r.Argv, Cwd: r.Cwd, User: r.User,
		PID: r.PID, StartedAt: r.StartedAt.UTC(),
	}
	if res := r.Result; res != nil {
		p.Status = "exited"
		p.EndedAt, p.ExitCode = timeOrNull(res.EndedAt), new(res.ExitCode)
		p.Signal, p.Cause, p.CauseDetail = res.Signal, string(res.Cause), res.CauseDetail
		p.TimedOut, p.DurationMS = res.Cause == sandbox.CauseTimeout, res.Duration.Milliseconds()
		p.StdoutBytes, p.StderrBytes = res.StdoutBytes, res.StderrBytes
		p.StdoutTruncated, p.StderrTruncated = res.StdoutTruncated, res.StderrTruncated
	}
	return p
}
