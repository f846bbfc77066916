// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/audit"
	"sandpit.dev/audit/recorder"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// The logs of a sandbox are what the audit log says of it.

const (
	defaultLogs = 100
	maxLogs     = 1000
	pageOfLogs  = 500 // of the audit log
)

// logFilter selects rows.
type logFilter struct {
	Status       *string  `query:"status"`
	Search       *string  `query:"search"`
	ToolName     *string  `query:"tool_name"`
	Meta         []string `query:"meta"`          // KEY=VALUE, all of them
	MetaContains []string `query:"meta_contains"` // likewise, a part of the value
	ParentCall   *string  `query:"parent_call_id"`
	From         *string  `query:"from_time"`
	To           *string  `query:"to_time"`
	SortBy       *string  `query:"sort_by"`
	SortOrder    *string  `query:"sort_order"`
}

func (f *logFilter) query() (recorder.Query, error) {
	var sp httpapi.Spellings
	q := recorder.Query{Text: httpapi.Given(f.Search), Since: instant(&sp, "from_time", f.From), Until: instant(&sp, "to_time", f.To)}
	if f.ToolName != nil {
		q.Types = []sandbox.EventType{sandbox.EventType(*f.ToolName)}
	}
	switch s := httpapi.Given(f.Status); s {
	case "":
	case statusSuccess:
		q.Outcomes = []audit.Outcome{audit.OK}
	case statusError:
		q.Outcomes = []audit.Outcome{audit.Failed, audit.Denied}
	default:
		sp.Add("status", "%q is neither success nor error", sandbox.Clip(s, 40))
	}
	for name, list := range map[string][]string{"meta": f.Meta, "meta_contains": f.MetaContains} {
		if len(list) > maxMeta {
			sp.Add(name, "has %d entries, more than %d", len(list), maxMeta)
			continue
		}
		for _, one := range list {
			key, value, ok := strings.Cut(one, "=")
			if !ok || key == "" {
				sp.Add(name, "%q is not KEY=VALUE", sandbox.Clip(one, 80))
			}
			q.Labels = append(q.Labels, recorder.Label{Name: key, Value: value, Part: name == "meta_contains"})
		}
	}
	if f.ParentCall != nil {
		sp.Add("parent_call_id", "is not known here: commands have no inner calls; leave it out")
	}
	if by := httpapi.Given(f.SortBy); by != "" && by != "created_at" {
		sp.Add("sort_by", "%q is not sorted by here; use created_at, or leave it out", sandbox.Clip(by, 40))
	}
	switch order := httpapi.Given(f.SortOrder); order {
	case "", "desc":
	case "asc":
		q.Oldest = true
	default:
		sp.Add("sort_order", "%q is neither asc nor desc", sandbox.Clip(order, 40))
	}
	return q, sp.Err()
}

// maxMeta bounds the filters by metadata, each of which is a condition of the search.
const maxMeta = 16

// instant reads a time, which is in UTC where it says no zone, as Python's times do.
func instant(sp *httpapi.Spellings, name string, text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, *text); err == nil {
			return t
		}
	}
	sp.Add(name, "%q is not a valid time such as 2026-01-31T12:00:00Z", sandbox.Clip(*text, 80))
	return time.Time{}
}

// Statuses of rows.
const (
	statusSuccess = "success"
	statusError   = "error"
)

type logRow struct {
	ID         string            `json:"id"`
	SandboxID  string            `json:"sandbox_id"`
	UserName   string            `json:"user_name"` // the token's name
	SourceType string            `json:"source_type"`
	ToolName   string            `json:"tool_name"` // exec, code, file.upload and the like
	Status     string            `json:"status"`    // success, error, denied or running
	Command    string            `json:"command"`
	ExitCode   *int              `json:"exit_code"`
	Stdout     string            `json:"stdout"` // the beginning and the end of it
	Stderr     string            `json:"stderr"`
	Error      string            `json:"error"`
	LatencyMS  float64           `json:"latency_ms"`
	Metadata   map[string]string `json:"metadata"`
	CreatedAt  time.Time         `json:"created_at"`
}

func logOf(r *audit.Record) logRow {
	out := logRow{
		ID: fmt.Sprintf("%s-%d", r.Writer, r.Seq), SandboxID: UUID(r.Sandbox), UserName: r.Actor, SourceType: "sandbox", ToolName: string(r.Type), Status: string(r.Outcome),
		Command: r.Command, ExitCode: r.Exit, Stdout: excerptOf(r.Stdout), Stderr: excerptOf(r.Stderr), Error: r.Code, LatencyMS: r.Millis, Metadata: r.Labels, CreatedAt: r.At.UTC(),
	}
	switch r.Outcome {
	case audit.OK:
		out.Status = statusSuccess
	case audit.Failed:
		out.Status = statusError
	case audit.Denied, audit.Running:
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	return out
}

func excerptOf(o *audit.Output) string {
	if o == nil {
		return ""
	}
	if left := o.Bytes - int64(len(o.First)+len(o.Last)); o.Last != "" && left > 0 {
		return fmt.Sprintf("%s\n… %d bytes …\n%s", o.First, left, o.Last)
	}
	return o.First + o.Last
}

type listLogs struct {
	ID string `path:"id"`
	logFilter
	Limit  *int `query:"limit"`
	Offset *int `query:"offset"`
}

type logPage struct {
	Items  []logRow `json:"items"`
	Total  int      `json:"total"`
	Limit  int      `json:"limit"`
	Offset int      `json:"offset"`
}

// logged returns the query for the rows of a sandbox that is there.
func (a *API) logged(ctx context.Context, c *httpapi.Call, id string, f *logFilter) (recorder.Query, error) {
	if a.Audit == nil {
		return recorder.Query{}, fault.New(fault.Unsupported, "this server keeps no audit log")
	}
	q, err := f.query()
	if err != nil {
		return q, err
	}
	ref, err := refOf(id)
	if err != nil {
		return q, err
	}
	s, err := a.Sandboxes.Get(ctx, c.Caller, ref)
	if err != nil {
		return q, err
	}
	q.Sandbox = s.ID
	return q, nil
}

func (a *API) listLogs(ctx context.Context, c *httpapi.Call, in *listLogs) (logPage, error) {
	q, err := a.logged(ctx, c, in.ID, &in.logFilter)
	if err != nil {
		return logPage{}, err
	}
	out := logPage{Items: []logRow{}, Limit: defaultLogs, Offset: given(in.Offset)}
	if in.Limit != nil {
		out.Limit = *in.Limit
	}
	if out.Limit < 1 || out.Limit > maxLogs {
		return logPage{}, fault.InvalidField("limit", "%d is outside 1 to %d", out.Limit, maxLogs)
	}
	if out.Offset < 0 {
		return logPage{}, fault.InvalidField("offset", "%d is less than 0", out.Offset)
	}
	if out.Total, err = a.Audit.Count(ctx, c.Caller, q); err != nil {
		return logPage{}, err
	}
	for q.Offset = out.Offset; len(out.Items) < out.Limit; q.Offset += q.Limit {
		q.Limit = min(pageOfLogs, out.Limit-len(out.Items))
		page, next, err := a.Audit.List(ctx, c.Caller, q)
		if err != nil {
			return logPage{}, err
		}
		for _, r := range page {
			out.Items = append(out.Items, logOf(r))
		}
		if next == "" {
			break
		}
	}
	return out, nil
}
