// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/query"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/audit"
	"sandpit.dev/audit/recorder"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// auditFilter is what selects rows of the audit log.
type auditFilter struct {
	Project *string  `query:"project" doc:"of this project, or * for all and for what concerns the server, for the server's own administrator's token; the default is the caller's"`
	Sandbox *string  `query:"sandbox" doc:"of the sandbox with this id, deleted or not"`
	Token   *string  `query:"token" doc:"by the token of this id or name"`
	Type    []string `query:"type" doc:"only these types, separated by commas: exec, call, file.upload and the like"`
	Outcome []string `query:"outcome" doc:"only these, separated by commas: ok, failed, denied, running"`
	Since   *string  `query:"since" doc:"from this time on (2026-01-31T12:00:00Z)"`
	Until   *string  `query:"until" doc:"before this time"`
	Text    *string  `query:"text" doc:"a part of what the row says, letter case ignored"`
}

func (f *auditFilter) query(sp *httpapi.Spellings) recorder.Query {
	q := recorder.Query{
		Project: httpapi.Given(f.Project), Sandbox: sandbox.ID(httpapi.Given(f.Sandbox)), Token: httpapi.Given(f.Token), Text: httpapi.Given(f.Text),
		Since: query.Instant(sp, "since", f.Since), Until: query.Instant(sp, "until", f.Until),
	}
	if q.Project == "*" {
		q.Project, q.AllProjects = "", true
	}
	for _, t := range f.Type {
		q.Types = append(q.Types, sandbox.EventType(t))
	}
	for _, o := range f.Outcome {
		q.Outcomes = append(q.Outcomes, audit.Outcome(o))
	}
	return q
}

// AuditLog returns the audit log, or an error where there is none.
func AuditLog(log service.Audit) (service.Audit, error) {
	if log == nil {
		return nil, fault.New(fault.Unsupported, "this server keeps no audit log")
	}
	return log, nil
}

type listAudit struct {
	auditFilter
	Limit  *int    `query:"limit" doc:"most rows of a page, 1 to 500; default 50"`
	Cursor *string `query:"cursor" doc:"next_cursor of the page before"`
}

func (a *API) listAudit(ctx context.Context, c *httpapi.Call, in *listAudit) (v1.AuditPage, error) {
	log, err := AuditLog(a.Audit)
	if err != nil {
		return v1.AuditPage{}, err
	}
	var sp httpapi.Spellings
	q := in.query(&sp)
	q.Cursor = httpapi.Given(in.Cursor)
	if in.Limit != nil {
		if q.Limit = *in.Limit; q.Limit < 1 {
			sp.Add("limit", "%d is outside 1 to 500", q.Limit)
		}
	}
	if err := sp.Err(); err != nil {
		return v1.AuditPage{}, err
	}
	page, next, err := log.List(ctx, c.Caller, q)
	if err != nil {
		return v1.AuditPage{}, err
	}
	out := v1.AuditPage{Items: make([]v1.AuditRecord, 0, len(page)), NextCursor: shape.TextOrNull(next)}
	for _, r := range page {
		out.Items = append(out.Items, auditRecordOf(r))
	}
	return out, nil
}

func auditRecordOf(r *audit.Record) v1.AuditRecord {
	out := v1.AuditRecord{
		Writer: r.Writer, Seq: r.Seq, At: r.At.UTC(), Type: string(r.Type), Outcome: string(r.Outcome),
		Project: shape.TextOrNull(r.Project), SandboxID: shape.TextOrNull(string(r.Sandbox)), TokenID: shape.TextOrNull(r.Token), Actor: shape.TextOrNull(r.Actor), Via: shape.TextOrNull(r.Via),
		Address: shape.TextOrNull(r.Address), RequestID: shape.TextOrNull(r.Request), Call: shape.TextOrNull(r.Call), Path: shape.TextOrNull(r.Path), Code: shape.TextOrNull(r.Code), Detail: shape.TextOrNull(r.Detail),
		ProcessID: shape.TextOrNull(r.Process), ContextID: shape.TextOrNull(r.Context), Language: shape.TextOrNull(r.Language), Command: shape.TextOrNull(r.Command), User: shape.TextOrNull(r.User), Cwd: shape.TextOrNull(r.Cwd),
		ExitCode: r.Exit, Signal: shape.TextOrNull(r.Signal), Cause: shape.TextOrNull(string(r.Cause)), Stdout: auditOutputOf(r.Stdout), Stderr: auditOutputOf(r.Stderr),
		Labels: r.Labels, FilesChanged: shape.Changes(r.Changes), FilesTotal: r.Changed, To: shape.TextOrNull(r.To),
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	if r.Status != 0 {
		out.Status = &r.Status
	}
	if r.Millis != 0 {
		out.DurationMS = &r.Millis
	}
	if r.Bytes != 0 {
		out.Bytes = &r.Bytes
	}
	return out
}

func auditOutputOf(o *audit.Output) *v1.AuditOutput {
	if o == nil {
		return nil
	}
	return &v1.AuditOutput{Bytes: o.Bytes, SHA256: shape.TextOrNull(o.SHA256), First: o.First, Last: o.Last}
}

type exportAudit struct {
	auditFilter
	Format *string `query:"format" doc:"jsonl (the default), which sandpit audit verify reads, or csv"`
}

func (a *API) exportAudit(ctx context.Context, c *httpapi.Call, in *exportAudit) error {
	var sp httpapi.Spellings
	q := in.query(&sp)
	if err := sp.Err(); err != nil {
		return err
	}
	return SendAudit(ctx, c, a.Audit, q, httpapi.Given(in.Format), "jsonl")
}

// SendAudit sends an export as it is made. One that breaks off ends without its last chunk, and as jsonl without its end.
func SendAudit(ctx context.Context, c *httpapi.Call, from service.Audit, q recorder.Query, format, lines string) error {
	log, err := AuditLog(from)
	if err != nil {
		return err
	}
	if format == "" {
		format = lines
	}
	if format != lines && format != "csv" {
		return fault.InvalidField("format", "%q is neither %s nor csv", sandbox.Clip(format, 40), lines)
	}
	export, err := log.NewExport(c.Caller, q)
	if err != nil {
		return err
	}
	h := c.W.Header()
	media, ending, write := v1.AuditType, "jsonl", export.JSON
	if format == "csv" {
		media, ending, write = "text/csv; charset=utf-8", "csv", export.CSV
	}
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", `attachment; filename="sandpit-audit.`+ending+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	ctx, done := c.Bound(ctx)
	defer done()
	w := c.StallWriter()
	defer w.Close()
	return httpapi.Cause(ctx, write(ctx, w))
}

func (a *API) verifyAudit(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.AuditReport, error) {
	log, err := AuditLog(a.Audit)
	if err != nil {
		return v1.AuditReport{}, err
	}
	r, err := log.Verify(ctx, c.Caller)
	if err != nil {
		return v1.AuditReport{}, err
	}
	return auditReportOf(r), nil
}

// auditReportOf returns a report as it is on the wire.
func auditReportOf(r *audit.Report) v1.AuditReport {
	out := v1.AuditReport{Key: r.Key.String(), Complete: r.Complete, Rows: r.Rows, Chains: make([]v1.AuditChain, 0, len(r.Chains)), Altered: append([]int64{}, r.Altered...)}
	if r.Rows > 0 {
		out.From, out.To = new(r.From.UTC()), new(r.To.UTC())
	}
	for _, ch := range r.Chains {
		out.Chains = append(out.Chains, v1.AuditChain{Writer: ch.Writer, From: ch.From, To: ch.To, Hash: ch.Hash.String()})
	}
	return out
}

type pruneAudit struct{ Body v1.PruneAudit }

func (a *API) pruneAudit(ctx context.Context, c *httpapi.Call, in *pruneAudit) (v1.AuditPruned, error) {
	log, err := AuditLog(a.Audit)
	if err != nil {
		return v1.AuditPruned{}, err
	}
	if in.Body.Before.IsZero() {
		return v1.AuditPruned{}, fault.InvalidField("before", "is missing").WithRemedy("say from when on rows stay, such as %s", time.Now().UTC().AddDate(0, 0, -90).Format(time.RFC3339))
	}
	n, err := log.Prune(ctx, c.Caller, in.Body.Before, in.Body.DryRun)
	return v1.AuditPruned{Rows: n, DryRun: in.Body.DryRun}, err
}
