// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"
	"strconv"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// runs is store.Runs within one transaction.
type runs struct{ tx *tx }

const (
	runColumns = "number, id, project, sandbox, identifier, state, actor, via, run_user, ttl, go_on, locked, canceled, error," +
		" created_at, started_at, ended_at, artifacts, artifact_bytes, artifacts_kept, artifacts_error, dropped_at, output_bytes"
	commandColumns = "shell, argv, cwd, env, timeout, allow_failure, status, process_id, frame, error, exit_code, signal, cause," +
		" started_at, ended_at, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated"
)

const (
	insertRun = "INSERT INTO runs (id, project, sandbox, identifier, state, actor, via, run_user, ttl, go_on, locked, canceled, error," +
		" created_at, started_at, ended_at, artifacts, artifact_bytes, artifacts_kept, artifacts_error, dropped_at, output_bytes) VALUES (" +
		"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) ON CONFLICT DO NOTHING"
	numberOfRun = "SELECT number FROM runs WHERE id = $1"
	getRun      = "SELECT " + runColumns + " FROM runs WHERE id = $1"
	updateRun   = "UPDATE runs SET sandbox = $1, state = $2, actor = $3, via = $4, run_user = $5, ttl = $6, go_on = $7, locked = $8," +
		" canceled = $9, error = $10, started_at = $11, ended_at = $12, artifacts = $13, artifact_bytes = $14, artifacts_kept = $15," +
		" artifacts_error = $16, output_bytes = $17 WHERE id = $18"
	insertRunCommand = "INSERT INTO run_commands (run, n, " + commandColumns + ") VALUES (" +
		"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)"
	updateRunCommand = "UPDATE run_commands SET shell = $3, argv = $4, cwd = $5, env = $6, timeout = $7, allow_failure = $8, status = $9," +
		" process_id = $10, frame = $11, error = $12, exit_code = $13, signal = $14, cause = $15, started_at = $16, ended_at = $17," +
		" stdout_bytes = $18, stderr_bytes = $19, stdout_truncated = $20, stderr_truncated = $21 WHERE run = $1 AND n = $2"
	listRunCommands  = "SELECT " + commandColumns + " FROM run_commands WHERE run = $1 ORDER BY n"
	appendRunEvent   = "INSERT INTO run_events (run, seq, type, at, n, truncated, data) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
	listRunEvents    = "SELECT seq, type, at, n, truncated, data FROM run_events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3"
	lastRunEvent     = "SELECT COALESCE(MAX(seq), 0) FROM run_events WHERE run = $1"
	dropRuns         = "UPDATE runs SET dropped_at = $1 WHERE sandbox = $2 AND dropped_at = 0"
	deleteRun        = "DELETE FROM runs WHERE id = $1"
	deleteCommands   = "DELETE FROM run_commands WHERE run = $1"
	deleteRunEvents  = "DELETE FROM run_events WHERE run = $1"
	sumArtifactBytes = "SELECT COALESCE(SUM(artifact_bytes), 0) FROM runs WHERE artifacts_kept = 1"
	sumOutputBytes   = "SELECT COALESCE(SUM(output_bytes), 0) FROM runs"
)

var _ store.Runs = runs{}

func (q runs) Insert(r *sandbox.Run) error {
	kept, err := artifactsText(r.Artifacts)
	if err != nil {
		return err
	}
	n, err := q.tx.exec(insertRun,
		r.ID, r.Project, string(r.Sandbox), r.Identifier, string(r.State), r.Actor, r.Via, r.User, int64(r.TTL), truth(r.GoOn), truth(r.Locked),
		truth(r.Canceled), r.Error, micros(r.CreatedAt), micros(r.StartedAt), micros(r.EndedAt), kept, r.ArtifactBytes, truth(r.ArtifactsKept),
		r.ArtifactsError, micros(r.DroppedAt), r.OutputBytes)
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.New(fault.Exists, "there is a run with the id %s", sandbox.Clip(r.ID, 40))
	}
	if _, err := q.tx.row(numberOfRun, []any{r.ID}, &r.Number); err != nil {
		return err
	}
	for i := range r.Commands {
		if _, err := q.tx.exec(insertRunCommand, commandArgs(r.ID, i, &r.Commands[i])...); err != nil {
			return err
		}
	}
	return nil
}

func commandArgs(run string, n int, c *sandbox.RunCommand) []any {
	return []any{
		run, int64(n), c.Shell, stringsText(c.Argv), c.Cwd, labelsText(c.Env), int64(c.Timeout), truth(c.AllowFailure), string(c.Status),
		c.ProcessID, c.Frame, c.Error, int64(c.ExitCode), c.Signal, string(c.Cause), micros(c.StartedAt), micros(c.EndedAt),
		c.StdoutBytes, c.StderrBytes, truth(c.StdoutTruncated), truth(c.StderrTruncated),
	}
}

func (q runs) Get(id string) (*sandbox.Run, error) {
	var row runRow
	found, err := q.tx.row(getRun, []any{id}, row.dest()...)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noRun(id)
	}
	r, err := row.run()
	if err != nil {
		return nil, q.tx.dialect.explain(q.tx.ctx, err)
	}
	err = q.tx.each(listRunCommands, []any{id}, func(scan func(...any) error) error {
		c, err := scanCommand(scan)
		r.Commands = append(r.Commands, c)
		return err
	})
	return r, err
}

func scanCommand(scan func(...any) error) (c sandbox.RunCommand, err error) {
	var argv, env string
	var timeout, allow, exit, started, ended, out, errs int64
	err = scan(&c.Shell, &argv, &c.Cwd, &env, &timeout, &allow, (*string)(&c.Status), &c.ProcessID, &c.Frame, &c.Error, &exit,
		&c.Signal, (*string)(&c.Cause), &started, &ended, &c.StdoutBytes, &c.StderrBytes, &out, &errs)
	if err != nil {
		return c, err
	}
	c.Timeout, c.AllowFailure, c.ExitCode = time.Duration(timeout), allow != 0, int(exit)
	c.StartedAt, c.EndedAt = fromMicros(started), fromMicros(ended)
	c.StdoutTruncated, c.StderrTruncated = out != 0, errs != 0
	if c.Argv, err = parseStrings(argv); err != nil {
		return c, err
	}
	c.Env, err = parseLabels(env)
	return c, err
}

func (q runs) Update(r *sandbox.Run) error {
	kept, err := artifactsText(r.Artifacts)
	if err != nil {
		return err
	}
	n, err := q.tx.exec(updateRun, string(r.Sandbox), string(r.State), r.Actor, r.Via, r.User, int64(r.TTL), truth(r.GoOn), truth(r.Locked),
		truth(r.Canceled), r.Error, micros(r.StartedAt), micros(r.EndedAt), kept, r.ArtifactBytes, truth(r.ArtifactsKept),
		r.ArtifactsError, r.OutputBytes, r.ID)
	if err == nil && n == 0 {
		err = noRun(r.ID)
	}
	return err
}

func (q runs) UpdateCommand(run string, n int, c *sandbox.RunCommand) error {
	changed, err := q.tx.exec(updateRunCommand, commandArgs(run, n, c)...)
	if err == nil && changed == 0 {
		err = noRun(run)
	}
	return err
}

func (q runs) Append(run string, e *sandbox.RunEvent) error {
	n, err := q.tx.exec(appendRunEvent, run, e.Seq, string(e.Type), micros(e.At), int64(e.Command), truth(e.Truncated), e.Data)
	if err == nil && n == 0 {
		err = fault.New(fault.Exists, "the run %s has an event %d", sandbox.Clip(run, 40), e.Seq)
	}
	return err
}

func (q runs) Events(run string, after int64, limit int) ([]*sandbox.RunEvent, error) {
	var out []*sandbox.RunEvent
	err := q.tx.each(listRunEvents, []any{run, after, int64(limit)}, func(scan func(...any) error) error {
		e := new(sandbox.RunEvent)
		var at, n, cut int64
		if err := scan(&e.Seq, (*string)(&e.Type), &at, &n, &cut, &e.Data); err != nil {
			return err
		}
		e.At, e.Command, e.Truncated = fromMicros(at), int(n), cut != 0
		if len(e.Data) == 0 {
			e.Data = nil
		}
		out = append(out, e)
		return nil
	})
	return out, err
}

func (q runs) LastSeq(run string) (last int64, err error) {
	_, err = q.tx.row(lastRunEvent, []any{run}, &last)
	return last, err
}

func (q runs) Drop(of sandbox.ID, at time.Time) (int, error) {
	n, err := q.tx.exec(dropRuns, micros(at), string(of))
	return int(n), err
}

func (q runs) Delete(id string) error {
	n, err := q.tx.exec(deleteRun, id)
	if err != nil {
		return err
	}
	if n == 0 {
		return noRun(id)
	}
	if _, err := q.tx.exec(deleteCommands, id); err != nil {
		return err
	}
	_, err = q.tx.exec(deleteRunEvents, id)
	return err
}

func (q runs) Held() (artifacts, output int64, err error) {
	if _, err = q.tx.row(sumArtifactBytes, nil, &artifacts); err == nil {
		_, err = q.tx.row(sumOutputBytes, nil, &output)
	}
	return artifacts, output, err
}

func noRun(id string) *fault.Error {
	return fault.New(fault.NotFound, "there is no run %q", sandbox.Clip(id, 40))
}

// runsMatching returns the conditions of a query, without its page. The planner sees one
// indexed column only, as with [eventListing]: the narrowest that the query names.
func runsMatching(query *store.RunQuery) *where {
	var w where
	indexed := query.Live || query.Dropped
	column := func(name string) string {
		if indexed {
			return unindexed(name)
		}
		indexed = true
		return name
	}
	if query.Live {
		w.and("ended_at = 0") // what a partial index covers is taken by the word
	}
	if query.Dropped {
		w.and("dropped_at > 0")
	}
	if query.Sandbox != "" {
		w.and(column("sandbox") + " = " + w.arg(string(query.Sandbox)))
	}
	if query.Project != "" {
		w.and(column("project") + " = " + w.arg(query.Project))
	}
	if query.Identifier != "" { // the second column of an index that begins with the project
		w.and("identifier = " + w.arg(query.Identifier))
	}
	if query.Kept {
		w.and("artifacts_kept = 1")
	}
	if query.Ended {
		w.and("ended_at > 0")
	}
	if !query.EndedBefore.IsZero() {
		w.and("ended_at > 0 AND ended_at < " + w.arg(micros(query.EndedBefore)))
	}
	return &w
}

func (q runs) List(query store.RunQuery) ([]*sandbox.Run, string, error) {
	limit, err := pageSize(query.Limit, 0, query.Cursor)
	if err != nil {
		return nil, "", err
	}
	w := runsMatching(&query)
	order, past := "DESC", "<"
	if query.Oldest {
		order, past = "ASC", ">"
	}
	if query.Cursor != "" {
		c, err := parseCursor(query.Cursor, cursorRuns, query.Project, query.Oldest)
		if err != nil {
			return nil, "", err
		}
		w.and("number " + past + " " + w.arg(c.number))
	}
	text := "SELECT " + runColumns + " FROM runs" + w.String() + " ORDER BY number " + order + " LIMIT " + strconv.Itoa(limit+1)
	var row runRow
	page, more, err := readPage(q.tx, text, w.args, limit, row.dest(), row.run)
	if err != nil || !more {
		return page, "", err
	}
	return page, cursor{kind: cursorRuns, project: query.Project, oldest: query.Oldest, number: page[limit-1].Number}.String(), nil
}

func (q runs) Count(query store.RunQuery) (int, error) {
	w := runsMatching(&query)
	var n int64
	_, err := q.tx.row("SELECT COUNT(*) FROM runs"+w.String(), w.args, &n)
	return int(n), err
}

// runRow is one row as the data base returns it.
type runRow struct {
	r                                                                   sandbox.Run
	ttl, goOn, locked, canceled, created, started, ended, kept, dropped int64
	artifacts                                                           string
}

// dest lists where the columns go, in the order of runColumns.
func (w *runRow) dest() []any {
	r := &w.r
	return []any{
		&r.Number, &r.ID, &r.Project, (*string)(&r.Sandbox), &r.Identifier, (*string)(&r.State), &r.Actor, &r.Via, &r.User,
		&w.ttl, &w.goOn, &w.locked, &w.canceled, &r.Error, &w.created, &w.started, &w.ended, &w.artifacts, &r.ArtifactBytes, &w.kept,
		&r.ArtifactsError, &w.dropped, &r.OutputBytes,
	}
}

func (w *runRow) run() (*sandbox.Run, error) {
	r := w.r
	r.TTL, r.GoOn, r.Locked, r.Canceled, r.ArtifactsKept = time.Duration(w.ttl), w.goOn != 0, w.locked != 0, w.canceled != 0, w.kept != 0
	r.CreatedAt, r.StartedAt, r.EndedAt, r.DroppedAt = fromMicros(w.created), fromMicros(w.started), fromMicros(w.ended), fromMicros(w.dropped)
	r.Artifacts = nil
	if w.artifacts != "" {
		if err := json.Unmarshal([]byte(w.artifacts), &r.Artifacts); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// artifactsText is "" for none. Their paths are valid UTF-8, so that plain JSON reads back as it
// was written.
func artifactsText(list []sandbox.Artifact) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	b, err := json.Marshal(list)
	return string(b), err
}

// stringsText is a JSON array of any bytes.
func stringsText(list []string) string {
	if len(list) == 0 {
		return "[]"
	}
	b := make([]byte, 0, 16*len(list))
	for i, one := range list {
		b = appendString(append(b, "[,"[min(i, 1)]), one)
	}
	return string(append(b, ']'))
}

func parseStrings(text string) ([]string, error) {
	if text == "[]" {
		return nil, nil
	}
	var out []string
	r := reader{text: text}
	for r.skip("[,") != 0 {
		out = append(out, r.string())
		if r.text == "]" {
			break
		}
	}
	return out, r.err
}
