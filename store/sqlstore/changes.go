// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"sandpit.dev/store"
)

// changes is store.Changes within one transaction.
type changes struct{ tx *tx }

const (
	appendChange = "INSERT INTO changes (project, type, at, actor, via, subject, object) VALUES ($1, $2, $3, $4, $5, $6, $7)"
	listChanges  = "SELECT seq, project, type, at, actor, via, subject, object FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2"
	changeBounds = "SELECT COALESCE((SELECT seq FROM changes ORDER BY seq LIMIT 1), 0), COALESCE((SELECT seq FROM changes ORDER BY seq DESC LIMIT 1), 0)"
	pruneChanges = "DELETE FROM changes WHERE seq <= (SELECT COALESCE(MAX(seq), 0) FROM (SELECT seq FROM changes ORDER BY seq LIMIT $1) AS oldest)" +
		" AND seq <= $2 AND seq < (SELECT seq FROM changes ORDER BY seq DESC LIMIT 1)"
)

var _ store.Changes = changes{}

func (q changes) Append(c *store.Change) error {
	seq, err := q.tx.number(appendChange, c.Project, c.Type, micros(c.At), c.Actor, c.Via, c.Subject, c.Object)
	if err == nil {
		c.Seq = seq
	}
	return err
}

func (q changes) List(after int64, limit int) ([]*store.Change, error) {
	var out []*store.Change
	err := q.tx.each(listChanges, []any{after, int64(limit)}, func(scan func(...any) error) error {
		c := new(store.Change)
		var at int64
		err := scan(&c.Seq, &c.Project, &c.Type, &at, &c.Actor, &c.Via, &c.Subject, &c.Object)
		c.At = fromMicros(at)
		out = append(out, c)
		return err
	})
	return out, err
}

func (q changes) Bounds() (oldest, newest int64, err error) {
	_, err = q.tx.row(changeBounds, nil, &oldest, &newest)
	return oldest, newest, err
}

func (q changes) Prune(upto int64, limit int) (int, error) {
	n, err := q.tx.exec(pruneChanges, int64(limit), upto)
	return int(n), err
}
