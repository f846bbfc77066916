// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strconv"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// events is store.Events within one transaction.
type events struct{ tx *tx }

const eventColumns = "sandbox, project, type, at, actor, via, detail, process_id, command, run_user, cwd," +
	" done, exit_code, signal, cause, duration, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated," +
	" changes, changes_total, path, moved_to, bytes, ok, language, context, name, labels, signaled_by, signaled_with"

// unfinished is the condition of the partial index of that name, word by word.
const unfinished = "done = 0 AND process_id <> ''"

// named is the condition of another one.
const named = "(name <> '' OR labels <> '{}' OR signaled_by <> '')"

const (
	appendEvent = "INSERT INTO events (" + eventColumns + ") VALUES (" +
		"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20," +
		" $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32)"
	finishEvent = "UPDATE events SET done = 1, detail = $1, exit_code = $2, signal = $3, cause = $4, duration = $5," +
		" stdout_bytes = $6, stderr_bytes = $7, stdout_truncated = $8, stderr_truncated = $9," +
		" changes = $10, changes_total = $11, bytes = $12, ok = $13," +
		" signaled_by = CASE WHEN $14 <> '' THEN $14 ELSE signaled_by END," +
		" signaled_with = CASE WHEN $14 <> '' THEN $15 ELSE signaled_with END" +
		" WHERE seq = $16 AND sandbox = $17 AND process_id = $18 AND " + unfinished
	findSignaled = "SELECT seq, signaled_by, signaled_with FROM events WHERE sandbox = $1 AND process_id = $2 AND " + unfinished + " ORDER BY seq LIMIT 1"
	signalEvent  = "UPDATE events SET signaled_by = $1, signaled_with = $2 WHERE seq = $3"
	unsignal     = "UPDATE events SET signaled_by = $1, signaled_with = $2" +
		" WHERE sandbox = $3 AND process_id = $4 AND signaled_by = $5 AND signaled_with = $6"
	findUnfinished = "SELECT seq FROM events WHERE sandbox = $1 AND process_id = $2 AND " + unfinished + " ORDER BY seq LIMIT 1"
	findFinished   = "SELECT seq FROM events WHERE sandbox = $1 AND process_id = $2 ORDER BY seq LIMIT 1"
	// The order by an expression keeps the planner from reading every event there
	// is in the order of seq, instead of sorting the few that the index has.
	allUnfinished = "SELECT seq, " + eventColumns + " FROM events WHERE " + unfinished + " ORDER BY seq + 0"
	oneUnfinished = "SELECT seq, " + eventColumns + " FROM events WHERE sandbox = $1 AND " + unfinished + " ORDER BY seq"
)

func (q events) Append(e *sandbox.Event) error {
	seq, err := q.tx.number(appendEvent,
		string(e.Sandbox), e.Project, string(e.Type), micros(e.At), e.Actor, e.Via, e.Detail,
		e.ProcessID, e.Command, e.User, e.Cwd, truth(e.Done), int64(e.ExitCode), e.Signal, string(e.Cause),
		int64(e.Duration), e.StdoutBytes, e.StderrBytes, truth(e.StdoutTruncated), truth(e.StderrTruncated),
		changesText(e.Changes), int64(e.ChangesTotal), e.Path, e.To, e.Bytes, truth(e.OK),
		e.Language, e.ContextID, e.Name, labelsText(e.Labels), e.Signaled.By, e.Signaled.With,
	)
	if err != nil {
		if e.Name != "" && q.tx.dialect.unique(err) {
			return fault.Wrap(fault.Exists, err, "a process named %q runs in the sandbox", sandbox.Clip(e.Name, 80))
		}
		return err
	}
	e.Seq = seq
	return nil
}

func (q events) Finish(e *sandbox.Event) error {
	if err := q.tx.ready(true); err != nil {
		return err
	}
	seq := e.Seq
	if seq == 0 {
		found, err := q.tx.row(findUnfinished, []any{string(e.Sandbox), e.ProcessID}, &seq)
		if err != nil {
			return err
		}
		if !found {
			return q.notUnfinished(e)
		}
	}
	n, err := q.tx.exec(finishEvent,
		e.Detail, int64(e.ExitCode), e.Signal, string(e.Cause), int64(e.Duration),
		e.StdoutBytes, e.StderrBytes, truth(e.StdoutTruncated), truth(e.StderrTruncated),
		changesText(e.Changes), int64(e.ChangesTotal), e.Bytes, truth(e.OK),
		e.Signaled.By, e.Signaled.With, seq, string(e.Sandbox), e.ProcessID)
	if err != nil {
		return err
	}
	if n == 0 {
		return q.notUnfinished(e)
	}
	e.Seq, e.Done = seq, true
	return nil
}

func (q events) notUnfinished(e *sandbox.Event) error {
	found, err := q.tx.row(findFinished, []any{string(e.Sandbox), e.ProcessID}, new(int64))
	switch {
	case err != nil:
		return err
	case found:
		return fault.New(fault.Conflict, "the command %q has its result already", sandbox.Clip(e.ProcessID, 40))
	}
	return fault.New(fault.NotFound, "no event tells of the command %q", sandbox.Clip(e.ProcessID, 40))
}

func (q events) Signal(id sandbox.ID, processID string, s sandbox.Signaled) (was sandbox.Signaled, found bool, err error) {
	if err := q.tx.ready(true); err != nil {
		return was, false, err
	}
	var seq int64
	if found, err = q.tx.row(findSignaled, []any{string(id), processID}, &seq, &was.By, &was.With); err != nil || !found {
		return was, false, err
	}
	_, err = q.tx.exec(signalEvent, s.By, s.With, seq)
	return was, err == nil, err
}

func (q events) Unsignal(id sandbox.ID, processID string, s, was sandbox.Signaled) error {
	_, err := q.tx.exec(unsignal, was.By, was.With, string(id), processID, s.By, s.With)
	return err
}

func (q events) List(query store.EventQuery) ([]*sandbox.Event, string, error) {
	limit, err := pageSize(query.Limit, 0, query.Cursor)
	if err != nil {
		return nil, "", err
	}
	text, args, err := eventListing(&query, limit)
	if err != nil {
		return nil, "", err
	}
	var row eventRow
	page, more, err := readPage(q.tx, text, args, limit, row.dest(), row.event)
	if err != nil || !more {
		return page, "", err
	}
	return page, cursor{kind: cursorEvents, project: query.Project, oldest: oldestFirst(&query), number: page[limit-1].Seq}.String(), nil
}

func oldestFirst(query *store.EventQuery) bool { return query.Oldest || query.After > 0 }

// eventListing is the statement of a page and one row more. It lets the planner
// see one indexed column only, the most selective that the query has; see
// [unindexed].
func eventListing(query *store.EventQuery, limit int) (string, []any, error) {
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
	if query.ProcessID != "" {
		w.and("process_id = " + w.arg(query.ProcessID))
	}
	if query.Named {
		w.and(named)
	}
	if query.Name != "" {
		w.and("name = " + w.arg(query.Name))
	}
	in(&w, "type", query.Types)
	if !query.Since.IsZero() {
		w.and("at >= " + w.arg(query.Since.UnixMicro()))
	}
	if !query.Until.IsZero() {
		w.and("at <= " + w.arg(query.Until.UnixMicro()))
	}
	after := query.After
	order := "DESC"
	if oldestFirst(query) {
		order = "ASC"
	}
	if query.Cursor != "" {
		c, err := parseCursor(query.Cursor, cursorEvents, query.Project, order == "ASC")
		if err != nil {
			return "", nil, err
		}
		if order == "ASC" {
			after = max(after, c.number)
		} else {
			w.and("seq < " + w.arg(c.number))
		}
	}
	if after > 0 {
		w.and("seq > " + w.arg(after))
	}
	return "SELECT seq, " + eventColumns + " FROM events" + w.String() +
		" ORDER BY seq " + order + " LIMIT " + strconv.Itoa(limit+1), w.args, nil
}

func (q events) Unfinished(id sandbox.ID) ([]*sandbox.Event, error) {
	text, args := allUnfinished, []any(nil)
	if id != "" {
		text, args = oneUnfinished, []any{string(id)}
	}
	var out []*sandbox.Event
	var row eventRow
	dest := row.dest()
	err := q.tx.each(text, args, func(scan func(...any) error) error {
		if err := scan(dest...); err != nil {
			return err
		}
		e, err := row.event()
		out = append(out, e)
		return err
	})
	return out, err
}

// eventRow is one row as the data base returns it.
type eventRow struct {
	e                              sandbox.Event
	at, done, exit, outCut, errCut int64
	changes, labels                string
	total, ok                      int64
}

func (r *eventRow) dest() []any {
	e := &r.e
	return []any{
		&e.Seq, (*string)(&e.Sandbox), &e.Project, (*string)(&e.Type), &r.at, &e.Actor, &e.Via, &e.Detail,
		&e.ProcessID, &e.Command, &e.User, &e.Cwd, &r.done, &r.exit, &e.Signal, (*string)(&e.Cause),
		(*int64)(&e.Duration), &e.StdoutBytes, &e.StderrBytes, &r.outCut, &r.errCut,
		&r.changes, &r.total, &e.Path, &e.To, &e.Bytes, &r.ok,
		&e.Language, &e.ContextID, &e.Name, &r.labels, &e.Signaled.By, &e.Signaled.With,
	}
}

func (r *eventRow) event() (*sandbox.Event, error) {
	e := r.e
	e.At, e.Done, e.ExitCode = fromMicros(r.at), r.done != 0, int(r.exit)
	e.StdoutTruncated, e.StderrTruncated, e.OK = r.outCut != 0, r.errCut != 0, r.ok != 0
	e.ChangesTotal = int(r.total)
	var err error
	if e.Labels, err = parseLabels(r.labels); err != nil {
		return &e, err
	}
	e.Changes, err = parseChanges(r.changes)
	return &e, err
}
