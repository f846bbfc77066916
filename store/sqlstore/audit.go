// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// audit is store.Audit within one transaction.
type audit struct{ tx *tx }

var _ store.Audit = audit{}

const (
	auditColumns = "writer, seq, at, type, outcome, project, sandbox, token, actor, body"
	appendAudit  = "INSERT INTO audit (" + auditColumns + ", hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
	// A chain's rows are in the order of their ids, and no index has them by writer: a data base has one that writes,
	// and an index more would be a page more of each commit.
	lastAudit    = "SELECT seq, hash FROM audit WHERE writer = $1 ORDER BY id DESC LIMIT 1"
	chainAudit   = "SELECT id, " + auditColumns + ", hash FROM audit WHERE writer = $1 AND id > $2 ORDER BY id LIMIT "
	reverseAudit = "SELECT id, " + auditColumns + ", hash FROM audit WHERE writer = $1 ORDER BY id DESC LIMIT "
	pruneAudit   = "DELETE FROM audit WHERE writer = $1 AND id <= $2 AND id < (SELECT MAX(id) FROM audit WHERE writer = $1)"
	auditWriters = "SELECT DISTINCT writer FROM audit_marks ORDER BY writer"

	putAuditMark = "INSERT INTO audit_marks (writer, kind, seq, hash, at, signature) VALUES ($1, $2, $3, $4, $5, $6)" +
		" ON CONFLICT (writer, kind) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, at = excluded.at, signature = excluded.signature"
	listAuditMarks = "SELECT kind, seq, hash, at, signature FROM audit_marks WHERE writer = $1 ORDER BY kind"
)

func (q audit) Last(writer string) (seq int64, hash []byte, err error) {
	_, err = q.tx.row(lastAudit, []any{writer}, &seq, &hash)
	return seq, hash, err
}

func (q audit) Append(r *store.AuditRow) error {
	id, err := q.tx.number(appendAudit, r.Writer, r.Seq, micros(r.At), string(r.Type), r.Outcome, r.Project, string(r.Sandbox), r.Token, r.Actor, string(r.Body), r.Hash)
	if err != nil {
		return err
	}
	r.ID = id
	return nil
}

// auditRow is one row as the data base returns it.
type auditRow struct {
	r    store.AuditRow
	at   int64
	body string
}

func (a *auditRow) dest() []any {
	r := &a.r
	return []any{&r.ID, &r.Writer, &r.Seq, &a.at, (*string)(&r.Type), &r.Outcome, &r.Project, (*string)(&r.Sandbox), &r.Token, &r.Actor, &a.body}
}

func (a *auditRow) row() (*store.AuditRow, error) {
	r := a.r
	r.At, r.Body, r.Hash = fromMicros(a.at), []byte(a.body), nil
	return &r, nil
}

// auditMatching returns the conditions of a query, without its page. They let the planner see one index only, that
// of the sandbox before that of the project.
func (q audit) matching(query *store.AuditQuery) *where {
	w := new(where)
	project := "project"
	if query.Sandbox != "" {
		w.and("sandbox <> ''") // as the partial index has it
		w.and("sandbox = " + w.arg(string(query.Sandbox)))
		project = unindexed(project)
	}
	if query.Project != "" {
		w.and(project + " = " + w.arg(query.Project))
	}
	if query.Token != "" {
		w.and("(token = " + w.arg(query.Token) + " OR actor = " + w.arg(query.Token) + ")")
	}
	in(w, "type", query.Types)
	in(w, "outcome", query.Outcomes)
	if !query.Since.IsZero() {
		w.and("at >= " + w.arg(micros(query.Since)))
	}
	if !query.Until.IsZero() {
		w.and("at < " + w.arg(micros(query.Until)))
	}
	if query.Text != "" {
		w.and(q.tx.dialect.contains("lower(body)", w.arg(strings.ToLower(query.Text))))
	}
	for _, l := range query.Labels {
		holds := "value = " + w.arg(l.Value)
		if l.Part {
			holds = q.tx.dialect.contains("lower(value)", w.arg(strings.ToLower(l.Value)))
		}
		w.and(q.tx.dialect.member("body", "labels", "key = "+w.arg(l.Name)+" AND "+holds))
	}
	return w
}

func (q audit) List(query store.AuditQuery) ([]*store.AuditRow, string, error) {
	limit, err := pageSize(query.Limit, query.Offset, query.Cursor)
	if err != nil {
		return nil, "", err
	}
	w, order, behind := q.matching(&query), "DESC", "< "
	if query.Oldest {
		order, behind = "ASC", "> "
	}
	if query.Cursor != "" {
		c, err := parseCursor(query.Cursor, cursorAudit, query.Project, query.Oldest)
		if err != nil {
			return nil, "", err
		}
		w.and("id " + behind + w.arg(c.number))
	}
	text := "SELECT id, " + auditColumns + " FROM audit" + w.String() + " ORDER BY id " + order + " LIMIT " + strconv.Itoa(limit+1)
	if query.Offset > 0 {
		text += " OFFSET " + strconv.Itoa(query.Offset)
	}
	var row auditRow
	page, more, err := readPage(q.tx, text, w.args, limit, row.dest(), row.row)
	if err != nil || !more {
		return page, "", err
	}
	return page, cursor{kind: cursorAudit, project: query.Project, oldest: query.Oldest, number: page[limit-1].ID}.String(), nil
}

func (q audit) Count(query store.AuditQuery) (int, error) {
	w := q.matching(&query)
	var n int64
	_, err := q.tx.row("SELECT COUNT(*) FROM audit"+w.String(), w.args, &n)
	return int(n), err
}

// hashed reads the rows of a statement with their hashes.
func (q audit) hashed(text string, args ...any) (all []*store.AuditRow, err error) {
	var row auditRow
	var hash []byte
	dest := append(row.dest(), &hash)
	err = q.tx.each(text, args, func(scan func(...any) error) error {
		if err := scan(dest...); err != nil {
			return err
		}
		r, err := row.row()
		r.Hash = hash
		all = append(all, r)
		hash = nil
		return err
	})
	return all, err
}

func (q audit) Chain(writer string, after int64, limit int) ([]*store.AuditRow, error) {
	if limit < 1 || limit > store.MaxPage {
		return nil, fault.InvalidField("limit", "%d is outside 1 to %d", limit, store.MaxPage)
	}
	return q.hashed(chainAudit+strconv.Itoa(limit), writer, after)
}

func (q audit) Matching(query store.AuditQuery, after int64, limit int) (all []*store.AuditRow, err error) {
	if limit < 1 || limit > store.MaxPage {
		return nil, fault.InvalidField("limit", "%d is outside 1 to %d", limit, store.MaxPage)
	}
	w := q.matching(&query)
	w.and("id > " + w.arg(after))
	text := "SELECT id, " + auditColumns + ", hash, (SELECT b.hash FROM audit b WHERE b.writer = audit.writer AND b.id < audit.id ORDER BY b.id DESC LIMIT 1) FROM audit" +
		w.String() + " ORDER BY id LIMIT " + strconv.Itoa(limit)
	var row auditRow
	var hash, before []byte
	dest := append(row.dest(), &hash, &before)
	err = q.tx.each(text, w.args, func(scan func(...any) error) error {
		if err := scan(dest...); err != nil {
			return err
		}
		r, err := row.row()
		r.Hash, r.After = hash, before
		all = append(all, r)
		hash, before = nil, nil
		return err
	})
	return all, err
}

func (q audit) Newest(writer string, limit int) ([]*store.AuditRow, error) {
	if limit < 1 || limit > store.MaxPage {
		return nil, fault.InvalidField("limit", "%d is outside 1 to %d", limit, store.MaxPage)
	}
	return q.hashed(reverseAudit+strconv.Itoa(limit), writer)
}

func (q audit) Writers() (all []string, err error) {
	err = q.tx.each(auditWriters, nil, func(scan func(...any) error) error {
		var w string
		if err := scan(&w); err != nil {
			return err
		}
		all = append(all, w)
		return nil
	})
	return all, err
}

func (q audit) Mark(m store.AuditMark) error {
	_, err := q.tx.exec(putAuditMark, m.Writer, m.Kind, m.Seq, m.Hash, micros(m.At), m.Signature)
	return err
}

func (q audit) Marks(writer string) (all []store.AuditMark, err error) {
	err = q.tx.each(listAuditMarks, []any{writer}, func(scan func(...any) error) error {
		m := store.AuditMark{Writer: writer}
		var at int64
		if err := scan(&m.Kind, &m.Seq, &m.Hash, &at, &m.Signature); err != nil {
			return err
		}
		m.At = fromMicros(at)
		all = append(all, m)
		return nil
	})
	return all, err
}

func (q audit) Prune(writer string, upto int64) (int, error) {
	n, err := q.tx.exec(pruneAudit, writer, upto)
	return int(n), err
}
