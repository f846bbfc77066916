// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Both looks are of a part of an index: a batch costs the same however many events
// there are.
const (
	lookByAge      = "SELECT COALESCE(MAX(seq), 0), COALESCE(MIN(at), 0) FROM (SELECT seq, at FROM events WHERE seq > $1 ORDER BY seq LIMIT $2) AS look"
	lookByProject  = "SELECT COALESCE(MAX(seq), 0) FROM (SELECT seq FROM events WHERE project = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4) AS look"
	nextProject    = "SELECT project FROM events WHERE project > $1 ORDER BY project LIMIT 1"
	firstProject   = "SELECT project FROM events ORDER BY project LIMIT 1"
	surplusUpto    = "SELECT seq FROM events WHERE project = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2"
	newestEvent    = "SELECT COALESCE(MAX(seq), 0) FROM events"
	preparedEvents = "SELECT seq, sandbox FROM events WHERE seq > $1 AND seq <= $2 AND type = $3"
	// A new server learns from these whether a command of a run was begun.
	liveCommands = "SELECT c.process_id FROM runs r JOIN run_commands c ON c.run = r.id WHERE r.ended_at = 0 AND c.process_id <> ''"
)

func (q events) Prune(p store.EventPrune) (deleted int, last int64, err error) {
	if p.Limit < 1 || p.Limit > store.MaxPage {
		return 0, 0, fault.InvalidField("limit", "%d is outside 1 to %d", p.Limit, store.MaxPage)
	}
	if err := q.tx.ready(true); err != nil {
		return 0, 0, err
	}
	if p.Upto > 0 {
		_, err = q.tx.row(lookByProject, []any{p.Project, p.After, p.Upto, int64(p.Limit)}, &last)
	} else {
		var oldest int64
		_, err = q.tx.row(lookByAge, []any{p.After, int64(p.Limit)}, &last, &oldest)
		if oldest >= p.Before.UnixMicro() {
			last = 0
		}
	}
	if err != nil || last == 0 {
		return 0, 0, err
	}
	spared, err := q.spared(&p, last)
	if err != nil {
		return 0, 0, err
	}
	text, args := pruning(&p, last, spared)
	n, err := q.tx.exec(text, args...)
	return int(n), last, err
}

// spared returns the events after p.After, up to last, that p.Spare keeps.
func (q events) spared(p *store.EventPrune, last int64) (seqs []int64, err error) {
	if p.Spare == nil {
		return nil, nil
	}
	err = q.tx.each(preparedEvents, []any{p.After, last, string(sandbox.EventPrepared)}, func(scan func(...any) error) error {
		var seq int64
		var id string
		err := scan(&seq, &id)
		if err == nil && p.Spare(sandbox.ID(id)) {
			seqs = append(seqs, seq)
		}
		return err
	})
	return seqs, err
}

// pruning is the statement that deletes what may go of the events after p.After, up to last.
func pruning(p *store.EventPrune, last int64, spared []int64) (string, []any) {
	var w where
	if p.Upto > 0 {
		w.and("project = " + w.arg(p.Project))
	}
	w.and("seq > " + w.arg(p.After))
	w.and("seq <= " + w.arg(last))
	w.and("seq < (" + newestEvent + ")")
	if p.Upto == 0 {
		w.and("at < " + w.arg(p.Before.UnixMicro()))
	}
	w.and("NOT (" + unfinished + ")")
	w.and("process_id NOT IN (" + liveCommands + ")")
	var owning, spare []string
	for _, t := range sandbox.OwningEvents() {
		owning = append(owning, w.arg(string(t)))
	}
	w.and("(at < " + w.arg(p.Recent.UnixMicro()) + " OR type NOT IN (" + strings.Join(owning, ", ") + "))")
	for _, seq := range spared {
		spare = append(spare, strconv.FormatInt(seq, 10))
	}
	if len(spare) > 0 {
		w.and("seq NOT IN (" + strings.Join(spare, ", ") + ")")
	}
	return "DELETE FROM events" + w.String(), w.args
}

func (q events) Surplus(keep int) (map[string]int64, error) {
	surplus := make(map[string]int64)
	var project string
	found, err := q.tx.row(firstProject, nil, &project)
	for found && err == nil {
		var upto int64
		if found, err = q.tx.row(surplusUpto, []any{project, int64(max(keep, 0))}, &upto); err != nil {
			return nil, err
		}
		if found {
			surplus[project] = upto
		}
		found, err = q.tx.row(nextProject, []any{project}, &project)
	}
	return surplus, err
}
