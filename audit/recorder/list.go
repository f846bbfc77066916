// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Query selects rows. Zero fields select all that the caller may see.
type Query struct {
	Project     string // empty: the caller's; another needs [access.ServerAdmin]
	AllProjects bool   // needs it, too, and rows of no project are among these
	Sandbox     sandbox.ID
	Token       string // by its id or its name
	Types       []sandbox.EventType
	Outcomes    []audit.Outcome
	Since       time.Time // not before
	Until       time.Time // before
	Text        string    // a part of what the row says, letter case ignored
	Labels      []Label
	Oldest      bool // oldest first; else newest first
	Limit       int  // of a page; zero: 50, at most 500
	Cursor      string
	Offset      int
}

// Label selects rows by a label of the process that they are of.
type Label struct {
	Name  string
	Value string
	Part  bool // Value is a part of its value, letter case ignored
}

const maxText = 200

// ask checks what a caller asks for.
func (q *Query) ask(c access.Caller) (store.AuditQuery, error) {
	out := store.AuditQuery{
		Project: q.Project, Sandbox: q.Sandbox, Token: q.Token, Types: q.Types, Since: q.Since, Until: q.Until, Text: q.Text, Oldest: q.Oldest,
		Limit: q.Limit, Cursor: q.Cursor, Offset: q.Offset,
	}
	for _, l := range q.Labels {
		out.Labels = append(out.Labels, store.AuditLabel(l))
	}
	for _, o := range q.Outcomes {
		switch o {
		case audit.OK, audit.Failed, audit.Denied, audit.Running:
			out.Outcomes = append(out.Outcomes, string(o))
		default:
			return out, fault.InvalidField("outcome", "%q is not one of ok, failed, denied, running", sandbox.Clip(string(o), 40))
		}
	}
	if len(q.Text) > maxText {
		return out, fault.InvalidField("text", "has %d bytes, more than %d", len(q.Text), maxText)
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return out, fault.InvalidField("until", "%s is not after since, %s", q.Until.Format(time.RFC3339), q.Since.Format(time.RFC3339))
	}
	out.Text = audit.Escape(q.Text)
	if q.AllProjects || q.Project != "" && q.Project != c.Project {
		return out, c.Require(access.ServerAdmin)
	}
	out.Project = c.Project
	return out, c.Require(access.Admin)
}

// List returns a page of rows, newest first, and the cursor of the next one ("" at the end). Rows of sandboxes that are
// deleted are among them.
func (r *Recorder) List(ctx context.Context, c access.Caller, q Query) (page []*audit.Record, next string, err error) {
	ask, err := q.ask(c)
	if err != nil {
		return nil, "", err
	}
	if err := r.flush(ctx, true, false); err != nil { // what was answered before this call is in it
		return nil, "", err
	}
	var rows []*store.AuditRow
	err = r.store.View(ctx, func(tx store.Tx) (err error) {
		rows, next, err = tx.Audit().List(ask)
		return err
	})
	for _, row := range rows {
		rec, err := audit.Decode(row.Body)
		if err != nil {
			return nil, "", err
		}
		page = append(page, rec)
	}
	return page, next, err
}

// Count returns how many rows a query matches, whatever its page.
func (r *Recorder) Count(ctx context.Context, c access.Caller, q Query) (n int, err error) {
	ask, err := q.ask(c)
	if err != nil {
		return 0, err
	}
	err = r.store.View(ctx, func(tx store.Tx) (err error) {
		n, err = tx.Audit().Count(ask)
		return err
	})
	return n, err
}
