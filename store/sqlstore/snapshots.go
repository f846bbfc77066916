// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
	"strconv"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// snapshots is store.Snapshots within one transaction.
type snapshots struct{ tx *tx }

const snapshotColumns = "id, project, sandbox, name, auto, parent, image, image_digest, runtime," +
	" cpu, memory_mb, disk_mb, pids, env, state, size_bytes, created_at, created_by, detail, archive, account"

// intents is the condition of the partial index of that name, word by word.
const intents = "state <> 'ready'"

const (
	insertSnapshot = "INSERT INTO snapshots (" + snapshotColumns + ") VALUES (" +
		"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) ON CONFLICT DO NOTHING"
	getSnapshot    = "SELECT " + snapshotColumns + " FROM snapshots WHERE id = $1"
	snapshotByName = "SELECT " + snapshotColumns + " FROM snapshots WHERE sandbox = $1 AND name = $2 AND name <> '' AND sandbox <> ''"
	updateSnapshot = "UPDATE snapshots SET name = $1, state = $2, size_bytes = $3, detail = $4, archive = $5 WHERE id = $6"
	moveSnapshots  = "UPDATE snapshots SET sandbox = $1 WHERE sandbox = $2"
	deleteSnapshot = "DELETE FROM snapshots WHERE id = $1"
)

var _ store.Snapshots = snapshots{}

func (q snapshots) Insert(s *sandbox.Snapshot) error {
	n, err := q.tx.exec(insertSnapshot,
		string(s.ID), s.Project, string(s.Sandbox), s.Name, truth(s.Auto), string(s.Parent), s.Image, s.ImageDigest, s.Runtime,
		s.Limits.CPU, int64(s.Limits.MemoryMB), int64(s.Limits.DiskMB), int64(s.Limits.Pids), labelsText(s.Env),
		string(s.State), s.SizeBytes, micros(s.CreatedAt), s.CreatedBy, s.Detail, archiveText(s.Archive), s.Account.Text())
	if err != nil || n == 1 {
		return err
	}
	if _, err := q.Get(s.ID); err == nil {
		return fault.New(fault.Exists, "there is a snapshot with the id %s", sandbox.Clip(string(s.ID), 80))
	} else if !fault.Is(err, fault.NotFound) {
		return err
	}
	return takenSnapshotName(s, nil)
}

func takenSnapshotName(s *sandbox.Snapshot, err error) *fault.Error {
	return fault.Wrap(fault.Exists, err, "the sandbox has a snapshot named %q", sandbox.Clip(s.Name, 80)).
		WithRemedy("choose another name, or ask for it to be replaced")
}

func (q snapshots) Get(id sandbox.ID) (*sandbox.Snapshot, error) {
	s, err := q.one(getSnapshot, string(id))
	if s == nil && err == nil {
		err = noSnapshot(string(id))
	}
	return s, err
}

func (q snapshots) ByName(of sandbox.ID, name string) (*sandbox.Snapshot, error) {
	s, err := q.one(snapshotByName, string(of), name)
	if s == nil && err == nil {
		err = noSnapshot(name)
	}
	return s, err
}

// one returns the row, or nil.
func (q snapshots) one(text string, args ...any) (*sandbox.Snapshot, error) {
	var row snapshotRow
	found, err := q.tx.row(text, args, row.dest()...)
	if !found || err != nil {
		return nil, err
	}
	s, err := row.snapshot()
	return s, q.tx.dialect.explain(q.tx.ctx, err)
}

func (q snapshots) Update(s *sandbox.Snapshot) error {
	n, err := q.tx.exec(updateSnapshot, s.Name, string(s.State), s.SizeBytes, s.Detail, archiveText(s.Archive), string(s.ID))
	switch {
	case err != nil && q.tx.dialect.unique(err):
		return takenSnapshotName(s, err)
	case err == nil && n == 0:
		return noSnapshot(string(s.ID))
	}
	return err
}

func (q snapshots) Move(from, to sandbox.ID) error {
	_, err := q.tx.exec(moveSnapshots, string(to), string(from))
	if err != nil && q.tx.dialect.unique(err) {
		err = fault.Wrap(fault.Exists, err, "the sandboxes %s and %s have snapshots of the same name", from, to).
			WithRemedy("delete one of the two, or keep it under another name")
	}
	return err
}

func (q snapshots) Delete(id sandbox.ID) error {
	n, err := q.tx.exec(deleteSnapshot, string(id))
	if err == nil && n == 0 {
		err = noSnapshot(string(id))
	}
	return err
}

func noSnapshot(ref string) *fault.Error {
	return fault.New(fault.NotFound, "there is no snapshot %q", sandbox.Clip(ref, 80))
}

// snapshotsMatching returns the conditions of a query, without its page. As with
// [eventListing], the planner sees one indexed column only.
func snapshotsMatching(query *store.SnapshotQuery) *where {
	var w where
	indexed := false
	column := func(name string) string {
		if indexed {
			return unindexed(name)
		}
		indexed = true
		return name
	}
	if query.Sandbox != "" {
		w.and(column("sandbox") + " = " + w.arg(string(query.Sandbox)))
	}
	if query.Project != "" {
		w.and(column("project") + " = " + w.arg(query.Project))
	}
	in(&w, "state", query.States)
	if !indexed && len(query.States) > 0 && !slices.Contains(query.States, sandbox.SnapshotReady) {
		w.and(intents) // what a partial index covers is taken by the word
	}
	if query.Auto != nil {
		w.and("auto = " + w.arg(truth(*query.Auto)))
	}
	if query.Named != nil && *query.Named {
		w.and("name <> ''")
	} else if query.Named != nil {
		w.and("name = ''")
	}
	return &w
}

func (q snapshots) List(query store.SnapshotQuery) ([]*sandbox.Snapshot, string, error) {
	limit, err := pageSize(query.Limit, 0, query.Cursor)
	if err != nil {
		return nil, "", err
	}
	text, args, err := snapshotListing(&query, limit)
	if err != nil {
		return nil, "", err
	}
	var row snapshotRow
	page, more, err := readPage(q.tx, text, args, limit, row.dest(), row.snapshot)
	if err != nil || !more {
		return page, "", err
	}
	last := page[limit-1]
	return page, cursor{kind: cursorSnapshots, project: query.Project, oldest: query.Oldest, number: micros(last.CreatedAt), name: string(last.ID)}.String(), nil
}

// snapshotListing is the statement of a page, with one row more to find whether there is a next
// one.
func snapshotListing(query *store.SnapshotQuery, limit int) (string, []any, error) {
	w := snapshotsMatching(query)
	order, past := "DESC", "<"
	if query.Oldest {
		order, past = "ASC", ">"
	}
	if query.Cursor != "" {
		c, err := parseCursor(query.Cursor, cursorSnapshots, query.Project, query.Oldest)
		if err != nil {
			return "", nil, err
		}
		w.and("(created_at, id) " + past + " (" + w.arg(c.number) + ", " + w.arg(c.name) + ")")
	}
	text := "SELECT " + snapshotColumns + " FROM snapshots" + w.String() +
		" ORDER BY created_at " + order + ", id " + order + " LIMIT " + strconv.Itoa(limit+1)
	return text, w.args, nil
}

func (q snapshots) Count(query store.SnapshotQuery) (int, error) {
	w := snapshotsMatching(&query)
	var n int64
	_, err := q.tx.row("SELECT COUNT(*) FROM snapshots"+w.String(), w.args, &n)
	return int(n), err
}

// snapshotRow is one row as the data base returns it.
type snapshotRow struct {
	s                                sandbox.Snapshot
	auto, memory, disk, pids, create int64
	env, archive, acct               string
}

// dest lists where the columns go, in the order of snapshotColumns.
func (r *snapshotRow) dest() []any {
	s := &r.s
	return []any{
		(*string)(&s.ID), &s.Project, (*string)(&s.Sandbox), &s.Name, &r.auto, (*string)(&s.Parent),
		&s.Image, &s.ImageDigest, &s.Runtime, &s.Limits.CPU, &r.memory, &r.disk, &r.pids, &r.env,
		(*string)(&s.State), &s.SizeBytes, &r.create, &s.CreatedBy, &s.Detail, &r.archive, &r.acct,
	}
}

func (r *snapshotRow) snapshot() (*sandbox.Snapshot, error) {
	s := r.s
	s.Auto, s.CreatedAt = r.auto != 0, fromMicros(r.create)
	s.Limits.MemoryMB, s.Limits.DiskMB, s.Limits.Pids = int(r.memory), int(r.disk), int(r.pids)
	var err error
	if s.Env, err = parseLabels(r.env); err != nil {
		return &s, err
	}
	if s.Archive, err = parseArchive(r.archive); err != nil {
		return &s, err
	}
	s.Account, err = sandbox.ParseAccount(r.acct)
	return &s, err
}
