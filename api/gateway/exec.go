// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	maxCommand     = 1 << 20  // bytes of a request with a command
	maxOutput      = 16 << 20 // bytes of each stream that an answer has
	defaultTimeout = 30 * time.Second
)

type exec struct {
	ID   string `path:"id"`
	Body struct {
		Command  string            `json:"command"`
		Timeout  *float64          `json:"timeout_seconds"`
		Metadata map[string]string `json:"metadata"` // the process's labels, which the audit log has
	}
}

type execResult struct {
	ExitCode   int          `json:"exit_code"`
	Stdout     string       `json:"stdout"`
	Stderr     string       `json:"stderr"`
	DurationMS int64        `json:"duration_ms"`
	Changed    []fileChange `json:"files_changed"`
	Cause      string       `json:"cause,omitempty"` // of its end, where that was not its own: timeout and the like
}

type fileChange struct {
	Path   string `json:"path"`
	Action string `json:"action"`
	Size   int64  `json:"size_bytes"`
}

func (a *API) exec(ctx context.Context, c *httpapi.Call, in *exec) (execResult, error) {
	b := &in.Body
	ref, err := refOf(in.ID)
	if err != nil {
		return execResult{}, err
	}
	if strings.TrimSpace(b.Command) == "" {
		return execResult{}, fault.InvalidField("command", "is empty")
	}
	r := engine.ExecRequest{
		Shell: b.Command, Timeout: min(defaultTimeout, a.Server.MostCommandTime()), MaxStdout: maxOutput, MaxStderr: maxOutput, Room: c.Room,
		Mark: process.Mark{Labels: b.Metadata},
	}
	if t := b.Timeout; t != nil {
		if most := a.Server.MostCommandTime().Seconds(); !(*t > 0 && *t <= most) {
			return execResult{}, fault.InvalidField("timeout_seconds", "%v is not more than 0 and at most %v", *t, most)
		}
		r.Timeout = time.Duration(*t * float64(time.Second))
	}
	ctx, done := c.Bound(ctx)
	defer done()
	res, err := a.Commands.Exec(ctx, c.Caller, ref, r, nil)
	if err != nil {
		var sp httpapi.Spellings
		sp.Wrote("labels", "metadata")
		return execResult{}, sp.Rename(httpapi.Cause(ctx, err))
	}
	out := execResult{
		ExitCode: res.ExitCode, Stdout: textOf(res.Stdout, res.StdoutTruncated), Stderr: textOf(res.Stderr, res.StderrTruncated),
		DurationMS: res.Duration.Milliseconds(), Changed: make([]fileChange, 0, len(res.Changes)), Cause: string(res.Cause),
	}
	for _, ch := range res.Changes {
		out.Changed = append(out.Changed, fileChange{ch.Path, ch.Action, ch.Size})
	}
	return out, nil
}

// textOf is output as text: bytes that are no UTF-8 are replaced, and what is left out is said.
func textOf(b []byte, cut bool) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if cut {
		s += "\n[the rest is left out]"
	}
	return s
}

type activityList struct {
	Items []activity `json:"items"`
}

type activity struct {
	ID         int64     `json:"id"`
	Type       string    `json:"type"` // exec, upload, download, started, stopped and the like
	CreatedAt  time.Time `json:"created_at"`
	Actor      string    `json:"actor"`
	Detail     string    `json:"detail"`
	Command    string    `json:"command,omitempty"`
	ExitCode   *int      `json:"exit_code,omitempty"` // of a command that has ended
	DurationMS *int64    `json:"duration_ms,omitempty"`
	Path       string    `json:"path,omitempty"`
	SizeBytes  int64     `json:"size_bytes,omitempty"`
}

// shownActivity is how many events a list has: the newest.
const shownActivity = 200

func (a *API) listActivity(ctx context.Context, c *httpapi.Call, in *byRef) (activityList, error) {
	ref, err := refOf(in.ID)
	if err != nil {
		return activityList{}, err
	}
	all, _, err := a.Activity.Activity(ctx, c.Caller, ref, engine.ActivityRequest{Limit: shownActivity})
	if err != nil {
		return activityList{}, err
	}
	out := activityList{Items: make([]activity, 0, len(all))}
	for _, e := range all {
		out.Items = append(out.Items, activityOf(e))
	}
	return out, nil
}

func activityOf(e *sandbox.Event) activity {
	out := activity{ID: e.Seq, Type: string(e.Type), CreatedAt: e.At.UTC(), Actor: e.Actor, Detail: e.Detail, Command: e.Command, Path: e.Path, SizeBytes: e.Bytes}
	if e.Done {
		out.ExitCode, out.DurationMS = new(e.ExitCode), new(e.Duration.Milliseconds())
	}
	return out
}
