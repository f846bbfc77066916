// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
)

// AuditQuery selects rows of the audit log. Zero fields select all of the caller's project.
type AuditQuery struct {
	Project      string // another one, or "*" for all and what concerns the server, for the server's own administrator's token
	Sandbox      string // its id; it may be deleted
	Token        string // by its id or its name
	Types        []string
	Outcomes     []string // ok, failed, denied, running
	Since, Until time.Time
	Text         string // a part of what the row says
}

func (q AuditQuery) values() url.Values {
	v := make(url.Values)
	set(v, "project", q.Project)
	set(v, "sandbox", q.Sandbox)
	set(v, "token", q.Token)
	set(v, "type", strings.Join(q.Types, ","))
	set(v, "outcome", strings.Join(q.Outcomes, ","))
	set(v, "text", q.Text)
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return v
}

// Audit returns the rows of the audit log, newest first. A page has up to pageSize of them (zero: the server's default).
func (c *Client) Audit(ctx context.Context, q AuditQuery, pageSize int) iter.Seq2[*v1.AuditRecord, error] {
	return all("", func(cursor string) ([]v1.AuditRecord, *string, error) {
		v := q.values()
		set(v, "cursor", cursor)
		if pageSize > 0 {
			v.Set("limit", strconv.Itoa(pageSize))
		}
		var p v1.AuditPage
		_, err := c.call(ctx, request{method: "GET", path: "/audit", query: v}, &p)
		return p.Items, p.NextCursor, err
	})
}

// ExportAudit opens the audit log as a file, oldest first: as lines of JSON that are signed, or as CSV. It is complete
// when Read returned io.EOF; any other error means that it was cut short. The caller closes it.
func (c *Client) ExportAudit(ctx context.Context, q AuditQuery, csv bool) (io.ReadCloser, error) {
	v := q.values()
	if csv {
		v.Set("format", "csv")
	}
	resp, err := c.do(ctx, request{method: "GET", path: "/audit/export", query: v})
	if err != nil {
		return nil, err
	}
	return &archive{resp.Body, "export", "export it"}, nil
}

// VerifyAudit has the server check its audit log. What is wrong with it is the error.
func (c *Client) VerifyAudit(ctx context.Context) (*v1.AuditReport, error) {
	r := new(v1.AuditReport)
	_, err := c.call(ctx, request{method: "POST", path: "/audit/verify"}, r)
	return r, err
}

// PruneAudit deletes rows of the audit log that are older than a time, or with dry counts them.
func (c *Client) PruneAudit(ctx context.Context, before time.Time, dry bool) (int, error) {
	var r v1.AuditPruned
	_, err := c.call(ctx, request{method: "POST", path: "/audit/prune", body: v1.PruneAudit{Before: before, DryRun: dry}}, &r)
	return r.Rows, err
}
