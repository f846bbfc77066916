// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/admin"
	"sandpit.dev/api/rest/query"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/audit"
	"sandpit.dev/audit/recorder"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// The audit log in the form of the MCP Gateway, which calls it the logs of executions.

const (
	gatewayLogs    = 100 // of a page
	mostGatewayLog = 500
)

// executionFilter is what the MCP Gateway selects logs by.
type executionFilter struct {
	ToolName *string `query:"tool_name" doc:"what was done: exec, code, file.upload and the like"`
	Status   *string `query:"status" doc:"success, error, denied or running"`
	From     *string `query:"from" doc:"from this time on"`
	To       *string `query:"to" doc:"before this time"`
	Search   *string `query:"search" doc:"a part of what the row says, letter case ignored"`
}

func (f *executionFilter) query(sp *httpapi.Spellings) recorder.Query {
	q := recorder.Query{Since: query.Instant(sp, "from", f.From), Until: query.Instant(sp, "to", f.To), Text: httpapi.Given(f.Search)}
	if f.ToolName != nil {
		q.Types = []sandbox.EventType{sandbox.EventType(*f.ToolName)}
	}
	switch httpapi.Given(f.Status) {
	case "":
	case "success":
		q.Outcomes = []audit.Outcome{audit.OK}
	case "error":
		q.Outcomes = []audit.Outcome{audit.Failed}
	case "denied", "running":
		q.Outcomes = []audit.Outcome{audit.Outcome(*f.Status)}
	default:
		sp.Add("status", "%q is not one of success, error, denied, running", sandbox.Clip(*f.Status, 40))
	}
	return q
}

type executionPage struct {
	Limit  *int `query:"limit" doc:"most rows of a page, 1 to 500; default 100"`
	Offset *int `query:"offset" doc:"rows to pass over"`
}

type sandboxLogs struct {
	ID string `path:"id" doc:"its id, also of one that is deleted, or the key of one that is there"`
	executionFilter
	executionPage
}

type observabilityLogs struct {
	SandboxID  *string `query:"sandbox_id" doc:"of the sandbox with this id, deleted or not"`
	UserID     *string `query:"user_id" doc:"of this project, for the server's own administrator's token"`
	SourceType *string `query:"source_type" doc:"sandbox, which is all that there is"`
	executionFilter
	executionPage
}

// logged returns the id of a sandbox, which may be gone.
func (a *API) logged(ctx context.Context, c *httpapi.Call, ref string) (sandbox.ID, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, ref)
	switch {
	case err == nil:
		return s.ID, nil
	case !fault.Is(err, fault.NotFound) || !sandbox.ValidID(ref):
		return "", err
	}
	log, unkept := admin.AuditLog(a.Audit)
	if unkept != nil {
		return "", unkept
	}
	// It was the project's, and not only asked for in it.
	lives := []sandbox.EventType{sandbox.EventCreated, sandbox.EventStarted, sandbox.EventDeleted}
	n, failed := log.Count(ctx, c.Caller, recorder.Query{Sandbox: sandbox.ID(ref), Types: lives})
	if failed != nil {
		return "", failed
	}
	if n == 0 {
		return "", err
	}
	return sandbox.ID(ref), nil
}

func (a *API) sandboxLogs(ctx context.Context, c *httpapi.Call, in *sandboxLogs) (v1.ExecutionLogPage, error) {
	id, err := a.logged(ctx, c, in.ID)
	if err != nil {
		return v1.ExecutionLogPage{}, err
	}
	var sp httpapi.Spellings
	q := in.query(&sp)
	q.Sandbox = id
	return a.executionLogs(ctx, c, &sp, q, in.executionPage)
}

func (a *API) observabilityLogs(ctx context.Context, c *httpapi.Call, in *observabilityLogs) (v1.ExecutionLogPage, error) {
	var sp httpapi.Spellings
	q := in.observed(&sp)
	return a.executionLogs(ctx, c, &sp, q, in.executionPage)
}

func (in *observabilityLogs) observed(sp *httpapi.Spellings) recorder.Query {
	q := in.query(sp)
	q.Sandbox, q.Project = sandbox.ID(httpapi.Given(in.SandboxID)), httpapi.Given(in.UserID)
	if s := httpapi.Given(in.SourceType); s != "" && s != "sandbox" {
		sp.Add("source_type", "%q is not sandbox, and there are logs of nothing else", sandbox.Clip(s, 40))
	}
	return q
}

func (a *API) executionLogs(ctx context.Context, c *httpapi.Call, sp *httpapi.Spellings, q recorder.Query, p executionPage) (v1.ExecutionLogPage, error) {
	log, err := admin.AuditLog(a.Audit)
	if err != nil {
		return v1.ExecutionLogPage{}, err
	}
	q.Limit = gatewayLogs
	if p.Limit != nil {
		if q.Limit = *p.Limit; q.Limit < 1 || q.Limit > mostGatewayLog {
			sp.Add("limit", "%d is outside 1 to %d", q.Limit, mostGatewayLog)
		}
	}
	if p.Offset != nil {
		if q.Offset = *p.Offset; q.Offset < 0 {
			sp.Add("offset", "%d is less than 0", q.Offset)
		}
	}
	if err := sp.Err(); err != nil {
		return v1.ExecutionLogPage{}, err
	}
	page, _, err := log.List(ctx, c.Caller, q)
	if err != nil {
		return v1.ExecutionLogPage{}, err
	}
	out := v1.ExecutionLogPage{Items: make([]v1.ExecutionLog, 0, len(page)), Limit: q.Limit, Offset: q.Offset}
	if out.Total, err = log.Count(ctx, c.Caller, q); err != nil {
		return v1.ExecutionLogPage{}, err
	}
	for _, r := range page {
		out.Items = append(out.Items, executionLogOf(r))
	}
	return out, nil
}

func executionLogOf(r *audit.Record) v1.ExecutionLog {
	out := v1.ExecutionLog{
		ID: fmt.Sprintf("%s-%d", r.Writer, r.Seq), SandboxID: string(r.Sandbox), UserID: r.Project, UserName: r.Actor, SourceType: "sandbox", ToolName: string(r.Type),
		Status: string(r.Outcome), Command: shape.TextOrNull(r.Command), ExitCode: r.Exit, Stdout: outputText(r.Stdout), Stderr: outputText(r.Stderr),
		FilesChanged: shape.Changes(r.Changes), CreatedAt: r.At.UTC(), RequestID: shape.TextOrNull(r.Request),
	}
	switch r.Outcome {
	case audit.OK:
		out.Status = "success"
	case audit.Failed:
		out.Status = "error"
	}
	if r.Millis != 0 {
		out.DurationMS = &r.Millis
	}
	return out
}

func outputText(o *audit.Output) string {
	switch {
	case o == nil:
		return ""
	case o.Last == "":
		return o.First
	}
	left := o.Bytes - int64(len(o.First)+len(o.Last))
	if left <= 0 {
		return o.First + o.Last
	}
	return strings.Join([]string{o.First, o.Last}, fmt.Sprintf("\n… %d bytes …\n", left))
}

type exportSandboxLogs struct {
	ID string `path:"id" doc:"as of sandboxLogs"`
	executionFilter
	Format *string `query:"format" doc:"json (the default), lines that sandpit audit verify reads, or csv"`
}

func (a *API) exportSandboxLogs(ctx context.Context, c *httpapi.Call, in *exportSandboxLogs) error {
	id, err := a.logged(ctx, c, in.ID)
	if err != nil {
		return err
	}
	var sp httpapi.Spellings
	q := in.query(&sp)
	q.Sandbox = id
	if err := sp.Err(); err != nil {
		return err
	}
	return admin.SendAudit(ctx, c, a.Audit, q, httpapi.Given(in.Format), "json")
}

type exportObservabilityLogs struct {
	observabilityLogs
	Format *string `query:"format" doc:"json (the default), lines that sandpit audit verify reads, or csv"`
}

func (a *API) exportObservabilityLogs(ctx context.Context, c *httpapi.Call, in *exportObservabilityLogs) error {
	var sp httpapi.Spellings
	q := in.observed(&sp)
	if err := sp.Err(); err != nil {
		return err
	}
	return admin.SendAudit(ctx, c, a.Audit, q, httpapi.Given(in.Format), "json")
}
