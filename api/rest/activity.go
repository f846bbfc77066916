// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"strings"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/query"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

type listActivity struct {
	Ref       string   `path:"id" doc:"the sandbox's id or key"`
	Limit     *int     `query:"limit" doc:"most rows of a page, 1 to 200; default 50"`
	Cursor    *string  `query:"cursor" doc:"next_cursor of the page before"`
	Type      []string `query:"type" doc:"only these types, separated by commas"`
	ProcessID *string  `query:"process_id" doc:"only what is about this command, by its id, as name:NAME or as pid:N"`
	Since     *string  `query:"since" doc:"only from this time on (2026-01-31T12:00:00Z)"`
	Until     *string  `query:"until" doc:"only before this time"`
	SortOrder *string  `query:"sort_order" doc:"desc (the default) or asc"`
}

const maxActivity = 200

func (a *API) listActivity(ctx context.Context, c *idempotency.Call, in *listActivity) (v1.EventPage, error) {
	var sp httpapi.Spellings
	q := engine.ActivityRequest{Limit: 50, Cursor: httpapi.Given(in.Cursor), ProcessID: httpapi.Given(in.ProcessID)}
	if in.Limit != nil {
		if *in.Limit < 1 || *in.Limit > maxActivity {
			sp.Add("limit", "%d is outside 1 to %d", *in.Limit, maxActivity)
		}
		q.Limit = *in.Limit
	}
	for _, t := range in.Type {
		q.Types = append(q.Types, sandbox.EventType(t))
	}
	q.Since = query.Instant(&sp, "since", in.Since)
	q.Until = query.Instant(&sp, "until", in.Until)
	q.Oldest = query.Ascending(&sp, in.SortOrder)
	if err := sp.Err(); err != nil {
		return v1.EventPage{}, err
	}
	events, next, err := a.Activity.Activity(ctx, c.Caller, in.Ref, q)
	if err != nil {
		return v1.EventPage{}, err
	}
	out := v1.EventPage{Items: make([]v1.Event, 0, len(events)), NextCursor: shape.TextOrNull(next)}
	for _, e := range events {
		out.Items = append(out.Items, eventOf(e))
	}
	return out, nil
}

func eventOf(e *sandbox.Event) v1.Event {
	out := v1.Event{Seq: e.Seq, Type: string(e.Type), At: e.At.UTC(), Actor: e.Actor, Via: e.Via, Detail: e.Detail}
	switch {
	case e.Type == sandbox.EventExec || e.Type == sandbox.EventTerminal || e.Type == sandbox.EventCode || e.Type == sandbox.EventContext || e.Type == sandbox.EventLanguageServer:
		out.Language = e.Language
		out.Name, out.Labels = e.Name, e.Labels
		out.ProcessID, out.Command, out.User, out.Cwd = e.ProcessID, e.Command, e.User, e.Cwd
		out.Status, out.ContextID = "running", e.ContextID
		out.SignaledBy, out.SignaledWith = e.Signaled.By, e.Signaled.With
		if !e.Done {
			break
		}
		out.Status = "exited"
		out.ExitCode, out.Signal, out.Cause = new(e.ExitCode), e.Signal, string(e.Cause)
		out.DurationMS, out.StdoutBytes, out.StderrBytes = new(e.Duration.Milliseconds()), new(e.StdoutBytes), new(e.StderrBytes)
		out.StdoutTruncated, out.StderrTruncated = e.StdoutTruncated, e.StderrTruncated
		out.FilesChangedTotal = e.ChangesTotal
		if len(e.Changes) > 0 {
			out.FilesChanged = shape.Changes(e.Changes)
		}
	case strings.HasPrefix(string(e.Type), "file."):
		out.Path, out.To, out.User, out.OK = e.Path, e.To, e.User, new(e.OK)
		if e.Type == sandbox.EventUpload || e.Type == sandbox.EventDownload {
			out.Size = new(e.Bytes)
		}
	default:
		out.Cause = string(e.Cause)
	}
	return out
}
