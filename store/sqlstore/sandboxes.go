// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strconv"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// sandboxes is store.Sandboxes within one transaction.
type sandboxes struct{ tx *tx }

const sandboxColumns = "id, project, key, image, image_digest, asked_image, runtime," +
	" cpu, memory_mb, disk_mb, pids, env, metadata, idle_timeout, retention, expires_at," +
	" state, stop_cause, stop_detail, handle, created_at, updated_at, started_at, stopped_at, last_activity," +
	" exec_count, exec_time, bytes_uploaded, bytes_downloaded, revision"

const (
	insertSandbox = "INSERT INTO sandboxes (" + sandboxColumns + ", search) VALUES (" +
		"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20," +
		" $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31) ON CONFLICT DO NOTHING"
	getSandbox   = "SELECT " + sandboxColumns + " FROM sandboxes WHERE id = $1"
	sandboxByKey = "SELECT " + sandboxColumns + " FROM sandboxes WHERE project = $1 AND key = $2 AND key <> ''"
	// The owner, the id and the time of its making never change.
	updateSandbox = "UPDATE sandboxes SET key = $1, image = $2, image_digest = $3, asked_image = $4, runtime = $5," +
		" cpu = $6, memory_mb = $7, disk_mb = $8, pids = $9, env = $10, metadata = $11," +
		" idle_timeout = $12, retention = $13, expires_at = $14, state = $15, stop_cause = $16, stop_detail = $17," +
		" handle = $18, updated_at = $19, started_at = $20, stopped_at = $21, last_activity = $22," +
		" exec_count = $23, exec_time = $24, bytes_uploaded = $25, bytes_downloaded = $26, search = $27," +
		" revision = revision + 1 WHERE id = $28 AND project = $29 AND revision = $30"
	deleteSandbox = "DELETE FROM sandboxes WHERE id = $1"
)

// searchBreak stands between the fields of the search column; it is in none.
const searchBreak = "\n"

// searchText is what a search looks in, with letter case folded here, where
// that means every alphabet and not only what the data base knows.
func searchText(s *sandbox.Sandbox) string {
	return strings.ToLower(string(s.ID) + searchBreak + s.Key + searchBreak + s.Image)
}

func (q sandboxes) Insert(s *sandbox.Sandbox) error {
	n, err := q.tx.exec(insertSandbox,
		string(s.ID), s.Project, s.Key, s.Image, s.ImageDigest, s.AskedImage, s.Runtime,
		s.Limits.CPU, int64(s.Limits.MemoryMB), int64(s.Limits.DiskMB), int64(s.Limits.Pids),
		labelsText(s.Env), labelsText(s.Metadata), int64(s.IdleTimeout), int64(s.Retention), micros(s.ExpiresAt),
		string(s.State), string(s.StopCause), s.StopDetail, s.Handle,
		micros(s.CreatedAt), micros(s.UpdatedAt), micros(s.StartedAt), micros(s.StoppedAt), micros(s.LastActivity),
		s.ExecCount, int64(s.ExecTime), s.BytesUploaded, s.BytesDownloaded, int64(1), searchText(s))
	if err != nil {
		return err
	}
	if n == 0 {
		return q.taken(s)
	}
	s.Revision = 1
	return nil
}

// taken says which of its two names a sandbox cannot have.
func (q sandboxes) taken(s *sandbox.Sandbox) error {
	if s.Key != "" {
		if other, err := q.ByKey(s.Project, s.Key); err == nil && other.ID != s.ID {
			return fault.New(fault.Exists, "the key %q is in use by the sandbox %s", sandbox.Clip(s.Key, 80), other.ID)
		} else if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return fault.New(fault.Exists, "there is a sandbox with the id %s", s.ID)
}

func (q sandboxes) Get(id sandbox.ID) (*sandbox.Sandbox, error) {
	s, err := q.one(getSandbox, string(id))
	if s == nil && err == nil {
		err = fault.New(fault.NotFound, "there is no sandbox %q", sandbox.Clip(string(id), 80))
	}
	return s, err
}

func (q sandboxes) ByKey(project, key string) (*sandbox.Sandbox, error) {
	s, err := q.one(sandboxByKey, project, key)
	if s == nil && err == nil {
		err = fault.New(fault.NotFound, "there is no sandbox with the key %q", sandbox.Clip(key, 80))
	}
	return s, err
}

// one gives the row, or nil.
func (q sandboxes) one(text string, args ...any) (*sandbox.Sandbox, error) {
	var row sandboxRow
	found, err := q.tx.row(text, args, row.dest()...)
	if !found || err != nil {
		return nil, err
	}
	s, err := row.sandbox()
	return s, q.tx.dialect.explain(q.tx.ctx, err)
}

func (q sandboxes) Update(s *sandbox.Sandbox) error {
	n, err := q.tx.exec(updateSandbox,
		s.Key, s.Image, s.ImageDigest, s.AskedImage, s.Runtime,
		s.Limits.CPU, int64(s.Limits.MemoryMB), int64(s.Limits.DiskMB), int64(s.Limits.Pids),
		labelsText(s.Env), labelsText(s.Metadata), int64(s.IdleTimeout), int64(s.Retention), micros(s.ExpiresAt),
		string(s.State), string(s.StopCause), s.StopDetail, s.Handle,
		micros(s.UpdatedAt), micros(s.StartedAt), micros(s.StoppedAt), micros(s.LastActivity),
		s.ExecCount, int64(s.ExecTime), s.BytesUploaded, s.BytesDownloaded, searchText(s),
		string(s.ID), s.Project, s.Revision)
	if err != nil {
		if q.tx.dialect.unique(err) {
			return fault.Wrap(fault.Exists, err, "the key %q is in use by another sandbox", sandbox.Clip(s.Key, 80))
		}
		return err
	}
	if n == 1 {
		s.Revision++
		return nil
	}
	now, err := q.Get(s.ID)
	if err != nil {
		return err
	}
	if now.Project != s.Project {
		return fault.New(fault.NotFound, "there is no sandbox %q", sandbox.Clip(string(s.ID), 80))
	}
	return fault.New(fault.Conflict, "the sandbox %s changed meanwhile: its revision is %d, not %d", s.ID, now.Revision, s.Revision).
		WithRemedy("read it again and retry")
}

func (q sandboxes) Delete(id sandbox.ID) error {
	n, err := q.tx.exec(deleteSandbox, string(id))
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "there is no sandbox %q", sandbox.Clip(string(id), 80))
	}
	if err == nil {
		_, err = q.tx.exec(deleteContexts, string(id))
	}
	return err
}

// matching gives the conditions of a query, without its page.
func (q sandboxes) matching(query *store.SandboxQuery) *where {
	var w where
	if query.Project != "" {
		w.and("project = " + w.arg(query.Project))
	}
	in(&w, "state", query.States)
	if query.Image != "" {
		w.and("image = " + w.arg(query.Image))
	}
	if query.Search != "" {
		if strings.Contains(query.Search, searchBreak) {
			w.and("1 = 0") // it would match across two fields, and it is in none
		} else {
			w.and(q.tx.dialect.contains("search", w.arg(strings.ToLower(query.Search))))
		}
	}
	for name, value := range query.Metadata {
		w.and(q.tx.dialect.contains("metadata", w.arg(labelText(name, value))))
	}
	return &w
}

func (q sandboxes) List(query store.SandboxQuery) ([]*sandbox.Sandbox, string, error) {
	limit, err := pageSize(query.Limit, query.Offset, query.Cursor)
	if err != nil {
		return nil, "", err
	}
	text, args, err := q.listing(&query, limit)
	if err != nil {
		return nil, "", err
	}
	var page []*sandbox.Sandbox
	more := false
	var row sandboxRow
	dest := row.dest()
	err = q.tx.each(text, args, func(scan func(...any) error) error {
		if len(page) == limit {
			more = true
			return nil
		}
		if err := scan(dest...); err != nil {
			return err
		}
		s, err := row.sandbox()
		page = append(page, s)
		return err
	})
	if err != nil || !more {
		return page, "", err
	}
	last := page[limit-1]
	return page, cursor{kind: cursorSandboxes, oldest: query.Oldest, number: micros(last.CreatedAt), name: string(last.ID)}.String(), nil
}

// listing is the statement of a page, with one row more to tell if there is a
// next one.
func (q sandboxes) listing(query *store.SandboxQuery, limit int) (string, []any, error) {
	w := q.matching(query)
	order, past := "DESC", "<"
	if query.Oldest {
		order, past = "ASC", ">"
	}
	if query.Cursor != "" {
		c, err := parseCursor(query.Cursor, cursorSandboxes, query.Oldest)
		if err != nil {
			return "", nil, err
		}
		w.and("(created_at, id) " + past + " (" + w.arg(c.number) + ", " + w.arg(c.name) + ")")
	}
	text := "SELECT " + sandboxColumns + " FROM sandboxes" + w.String() +
		" ORDER BY created_at " + order + ", id " + order + " LIMIT " + strconv.Itoa(limit+1)
	if query.Offset > 0 {
		text += " OFFSET " + w.arg(int64(query.Offset))
	}
	return text, w.args, nil
}

func (q sandboxes) Count(query store.SandboxQuery) (map[sandbox.State]int, error) {
	w := q.matching(&query)
	counts := make(map[sandbox.State]int)
	err := q.tx.each("SELECT state, COUNT(*) FROM sandboxes"+w.String()+" GROUP BY state", w.args,
		func(scan func(...any) error) error {
			var state string
			var n int64
			err := scan(&state, &n)
			counts[sandbox.State(state)] = int(n)
			return err
		})
	return counts, err
}

// sandboxRow is one row as the data base gives it.
type sandboxRow struct {
	s                                                 sandbox.Sandbox
	memory, disk, pids                                int64
	env, metadata                                     string
	expires, created, updated, started, stopped, last int64
}

// dest lists where the columns go, in the order of sandboxColumns. Pointers to
// plain strings and int64s take the short way through database/sql.
func (r *sandboxRow) dest() []any {
	s := &r.s
	return []any{
		(*string)(&s.ID), &s.Project, &s.Key, &s.Image, &s.ImageDigest, &s.AskedImage, &s.Runtime,
		&s.Limits.CPU, &r.memory, &r.disk, &r.pids, &r.env, &r.metadata,
		(*int64)(&s.IdleTimeout), (*int64)(&s.Retention), &r.expires,
		(*string)(&s.State), (*string)(&s.StopCause), &s.StopDetail, &s.Handle,
		&r.created, &r.updated, &r.started, &r.stopped, &r.last,
		&s.ExecCount, (*int64)(&s.ExecTime), &s.BytesUploaded, &s.BytesDownloaded, &s.Revision,
	}
}

// sandbox makes the record of the row that was read last.
func (r *sandboxRow) sandbox() (*sandbox.Sandbox, error) {
	s := r.s
	s.Limits.MemoryMB, s.Limits.DiskMB, s.Limits.Pids = int(r.memory), int(r.disk), int(r.pids)
	for _, t := range []struct {
		to *time.Time
		us int64
	}{
		{&s.ExpiresAt, r.expires}, {&s.CreatedAt, r.created}, {&s.UpdatedAt, r.updated},
		{&s.StartedAt, r.started}, {&s.StoppedAt, r.stopped}, {&s.LastActivity, r.last},
	} {
		*t.to = fromMicros(t.us)
	}
	var err error
	if s.Env, err = parseLabels(r.env); err != nil {
		return nil, err
	}
	if s.Metadata, err = parseLabels(r.metadata); err != nil {
		return nil, err
	}
	return &s, nil
}
