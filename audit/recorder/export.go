// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// Export is an export that is about to be written.
type Export struct {
	r   *Recorder
	q   Query
	ask store.AuditQuery
}

// NewExport returns an export of the rows of a query, oldest first, whose Limit, Cursor and Offset are ignored.
func (r *Recorder) NewExport(c access.Caller, q Query) (*Export, error) {
	q.Limit, q.Cursor, q.Offset = 0, "", 0
	ask, err := q.ask(c)
	return &Export{r, q, ask}, err
}

// complete reports whether no row is left out.
func (e *Export) complete() bool {
	q := e.q
	return q.AllProjects && q.Sandbox == "" && q.Token == "" && len(q.Types) == 0 && len(q.Outcomes) == 0 && q.Since.IsZero() && q.Until.IsZero() && q.Text == ""
}

func (e *Export) filter() map[string]string {
	f := make(map[string]string)
	set := func(name, value string) {
		if value != "" {
			f[name] = value
		}
	}
	set("project", e.ask.Project)
	set("sandbox", string(e.ask.Sandbox))
	set("token", e.ask.Token)
	set("outcome", strings.Join(e.ask.Outcomes, ","))
	set("text", e.q.Text)
	var types []string
	for _, t := range e.ask.Types {
		types = append(types, string(t))
	}
	set("type", strings.Join(types, ","))
	for name, at := range map[string]time.Time{"since": e.ask.Since, "until": e.ask.Until} {
		if !at.IsZero() {
			set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return f
}

// each calls fn for the rows of the query, oldest first, with the hash of the row before each.
func (e *Export) each(ctx context.Context, fn func(row *store.AuditRow, after, hash audit.Hash) error) error {
	e.r.pages.RLock()
	defer e.r.pages.RUnlock()
	if err := e.r.flush(ctx, true, false); err != nil {
		return err
	}
	for last := int64(0); ; {
		var rows []*store.AuditRow
		err := e.r.store.View(ctx, func(tx store.Tx) (err error) {
			rows, err = tx.Audit().Matching(e.ask, last, batch)
			return err
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			last = row.ID
			hash, ok := audit.HashOf(row.Hash)
			after, known := audit.HashOf(row.After)
			if !known && row.Seq > 1 {
				if after, known, err = e.r.startOf(ctx, row); err != nil {
					return err
				}
			}
			if !ok || !known && row.Seq > 1 {
				return fault.New(fault.Invalid, "row %d of %.40q, or the one before it, has no hash", row.Seq, row.Writer)
			}
			if err := fn(row, after, hash); err != nil {
				return err
			}
		}
	}
}

// startOf returns the hash of the row before the oldest that is there.
func (r *Recorder) startOf(ctx context.Context, row *store.AuditRow) (after audit.Hash, known bool, err error) {
	err = r.store.View(ctx, func(tx store.Tx) error {
		marks, err := tx.Audit().Marks(row.Writer)
		for _, m := range marks {
			if m.Kind == string(audit.Start) && m.Seq == row.Seq-1 {
				after, known = audit.HashOf(m.Hash)
			}
		}
		return err
	})
	return after, known, err
}

// JSON writes the export that [audit.VerifyExport] reads.
func (e *Export) JSON(ctx context.Context, w io.Writer) (err error) {
	out := audit.NewExport(w, e.r.o.Key, audit.Header{At: e.r.now(), Complete: e.complete(), Filter: e.filter()})
	if e.complete() {
		err = e.r.walk(ctx, out.Checkpoint, func(row *store.AuditRow, hash audit.Hash) error { return out.Row(audit.Hash{}, row.Body, hash) })
	} else {
		err = e.each(ctx, func(row *store.AuditRow, after, hash audit.Hash) error { return out.Row(after, row.Body, hash) })
	}
	if err != nil {
		return err
	}
	return out.Close()
}

// csvColumns are the columns of an export as CSV.
var csvColumns = [...]string{"at", "type", "outcome", "project", "sandbox", "actor", "token", "via", "address", "request_id", "call", "path", "status", "code", "command", "user", "exit_code", "duration_ms",
	"stdout_bytes", "stdout", "stderr_bytes", "stderr", "files_changed", "detail", "writer", "seq", "hash"}

// CSV writes the rows as CSV (RFC 4180), with a line of names first. A cell that a spreadsheet would take for a formula
// begins with a quote mark. It is for reading: nothing is signed.
func (e *Export) CSV(ctx context.Context, w io.Writer) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(csvColumns[:]); err != nil {
		return err
	}
	err := e.each(ctx, func(row *store.AuditRow, _, hash audit.Hash) error {
		r, err := audit.Decode(row.Body)
		if err != nil {
			return err
		}
		return out.Write(cells(r, hash))
	})
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}

func cells(r *audit.Record, hash audit.Hash) []string {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	output := func(o *audit.Output) (string, string) {
		if o == nil {
			return "", ""
		}
		text := o.First
		if o.Last != "" {
			text += " … " + o.Last
		}
		return number(o.Bytes), text
	}
	var exit, took string
	if r.Exit != nil {
		exit = strconv.Itoa(*r.Exit)
	}
	if r.Millis != 0 {
		took = strconv.FormatFloat(r.Millis, 'f', -1, 64)
	}
	var changes []string
	for _, c := range r.Changes {
		changes = append(changes, c.Action+" "+c.Path)
	}
	n1, stdout := output(r.Stdout)
	n2, stderr := output(r.Stderr)
	all := []string{r.At.UTC().Format(time.RFC3339Nano), string(r.Type), string(r.Outcome), r.Project, string(r.Sandbox), r.Actor, r.Token, r.Via, r.Address, r.Request, r.Call, r.Path,
		number(int64(r.Status)), r.Code, r.Command, r.User, exit, took, n1, stdout, n2, stderr, strings.Join(changes, "; "), r.Detail, r.Writer, number(r.Seq), hash.String()}
	for i, cell := range all {
		if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
			all[i] = "'" + cell
		}
	}
	return all
}
