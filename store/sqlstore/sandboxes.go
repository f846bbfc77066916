// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
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
	" exec_count, exec_time, bytes_uploaded, bytes_downloaded, revision," +
	" mounts, on_idle, auto_delete, ttl, auto_start, auto_resume, checkpoints, restore_to, parent, forked_from, run_time, running_since, network, skills, archive, archive_after, template, retention_default, on_expiry, sudo, token_round, previews, account, file_salt"

const (
	insertSandbox = "INSERT INTO sandboxes (" + sandboxColumns + ", search) VALUES (" +
		"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20," +
		" $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55) ON CONFLICT DO NOTHING"
	getSandbox   = "SELECT " + sandboxColumns + " FROM sandboxes WHERE id = $1"
	sandboxByKey = "SELECT " + sandboxColumns + " FROM sandboxes WHERE project = $1 AND key = $2 AND key <> ''"
	// The owner, the id, the account and the time of its making never change.
	setSandbox = "UPDATE sandboxes SET image_digest = $1, asked_image = $2, runtime = $3," +
		" cpu = $4, memory_mb = $5, disk_mb = $6, pids = $7, env = $8, metadata = $9," +
		" idle_timeout = $10, retention = $11, expires_at = $12, stop_cause = $13, stop_detail = $14," +
		" handle = $15, updated_at = $16, started_at = $17, stopped_at = $18, last_activity = $19," +
		" exec_count = $20, exec_time = $21, bytes_uploaded = $22, bytes_downloaded = $23," +
		" on_idle = $24, auto_delete = $25, ttl = $26, auto_start = $27, auto_resume = $28, checkpoints = $29," +
		" restore_to = $30, parent = $31, forked_from = $32, run_time = $33, running_since = $34, network = $35, skills = $36, archive = $44, archive_after = $45, template = $46, retention_default = $47, on_expiry = $48, sudo = $49, token_round = $50, previews = $51, file_salt = $52, revision = revision + 1"
	thatSandbox = " WHERE id = $37 AND project = $38 AND revision = $39"
	// An index is written when a statement names a column of it, whether or not
	// that changes. So there are three: the change after a command names none, the
	// change of a state that column alone; each finds a row only where the others
	// stay as they are.
	updateSandbox  = setSandbox + thatSandbox + keptSandbox + " AND state = $43"
	moveSandbox    = setSandbox + ", state = $43" + thatSandbox + keptSandbox
	replaceSandbox = setSandbox + ", mounts = $40, key = $41, image = $42, state = $43, search = $53" + thatSandbox
	keptSandbox    = " AND mounts = $40 AND key = $41 AND image = $42"
	tallySandbox   = "UPDATE sandboxes SET last_activity = $1, exec_count = $2, exec_time = $3, bytes_uploaded = $4," +
		" bytes_downloaded = $5, revision = revision + 1 WHERE id = $6 AND project = $7 AND revision = $8"
	touchSandbox    = "UPDATE sandboxes SET last_activity = $1 WHERE id = $2 AND last_activity < $1"
	retainSandboxes = "UPDATE sandboxes SET retention = $1 WHERE retention_default <> 0 AND retention <> $1"
	replacedByIt    = "SELECT project, revision, state, mounts FROM sandboxes WHERE id = $1"
	deleteSandbox   = "DELETE FROM sandboxes WHERE id = $1 RETURNING project, state, mounts, archive"

	insertMount  = "INSERT INTO sandbox_mounts (sandbox, volume) VALUES ($1, $2) ON CONFLICT DO NOTHING"
	deleteMounts = "DELETE FROM sandbox_mounts WHERE sandbox = $1"

	addStopped = "INSERT INTO sandboxes_stopped (project, n) VALUES ($1, $2)" +
		" ON CONFLICT (project) DO UPDATE SET n = sandboxes_stopped.n + excluded.n"
	countStopped  = "SELECT COALESCE(SUM(n), 0) FROM sandboxes_stopped WHERE project = $1"
	countStoppedN = "SELECT COALESCE(SUM(n), 0) FROM sandboxes_stopped"
)

// noMounts is the column of a sandbox without any, see [mountsText].
const noMounts = "[]"

// noSkills is likewise that of one without installed skills.
const noSkills = "[]"

// awake is the condition of the partial index of that name, word by word.
const awake = "state <> 'stopped'"

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
		s.ExecCount, int64(s.ExecTime), s.BytesUploaded, s.BytesDownloaded, int64(1),
		mountsText(s.Mounts), string(s.OnIdle), truth(s.AutoDelete), int64(s.TTL), truth(s.AutoStart), truth(s.AutoResume), string(s.Checkpoints),
		string(s.Restore), string(s.Parent), string(s.ForkedFrom), int64(s.RunTime), micros(s.RunningSince), networkText(s.Network), skillsText(s.Skills),
		archiveText(s.Archive), int64(s.ArchiveAfter), templateText(s.Template), truth(s.RetentionDefault), string(s.OnExpiry), truth(s.Sudo), s.TokenRound, previewsText(s.Previews), s.Account.Text(), s.FileSalt, searchText(s))
	if err != nil {
		return err
	}
	if n == 0 {
		return q.taken(s)
	}
	s.Revision = 1
	if err := q.moved(s.Project, "", s.State); err != nil {
		return err
	}
	return q.insertMounts(s)
}

// moved keeps the number of the stopped ones: there may be too many to count,
// and few commits change it.
func (q sandboxes) moved(project string, from, to sandbox.State) error {
	n := truth(to == sandbox.Stopped) - truth(from == sandbox.Stopped)
	if n == 0 {
		return nil
	}
	_, err := q.tx.exec(addStopped, project, n)
	return err
}

// insertMounts adds the rows by which [volumes.Users] finds s.
func (q sandboxes) insertMounts(s *sandbox.Sandbox) error {
	for _, m := range s.Mounts {
		if _, err := q.tx.exec(insertMount, string(s.ID), string(m.Volume)); err != nil {
			return err
		}
	}
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
		err = noSandbox(id)
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

// one returns the row, or nil.
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
	mounts := mountsText(s.Mounts)
	args := []any{
		s.ImageDigest, s.AskedImage, s.Runtime,
		s.Limits.CPU, int64(s.Limits.MemoryMB), int64(s.Limits.DiskMB), int64(s.Limits.Pids), labelsText(s.Env), labelsText(s.Metadata),
		int64(s.IdleTimeout), int64(s.Retention), micros(s.ExpiresAt), string(s.StopCause), s.StopDetail,
		s.Handle, micros(s.UpdatedAt), micros(s.StartedAt), micros(s.StoppedAt), micros(s.LastActivity),
		s.ExecCount, int64(s.ExecTime), s.BytesUploaded, s.BytesDownloaded,
		string(s.OnIdle), truth(s.AutoDelete), int64(s.TTL), truth(s.AutoStart), truth(s.AutoResume), string(s.Checkpoints),
		string(s.Restore), string(s.Parent), string(s.ForkedFrom), int64(s.RunTime), micros(s.RunningSince), networkText(s.Network), skillsText(s.Skills),
		string(s.ID), s.Project, s.Revision, mounts, s.Key, s.Image, string(s.State),
		archiveText(s.Archive), int64(s.ArchiveAfter), templateText(s.Template), truth(s.RetentionDefault), string(s.OnExpiry), truth(s.Sudo), s.TokenRound, previewsText(s.Previews), s.FileSalt,
	}
	n, err := q.tx.exec(updateSandbox, args...)
	if err != nil {
		return err
	}
	if n == 0 {
		err = q.replace(s, mounts, args)
	}
	if err == nil {
		s.Revision++
	}
	return err
}

func (q sandboxes) Touch(id sandbox.ID, at time.Time) error {
	_, err := q.tx.exec(touchSandbox, micros(at), string(id))
	return err
}

func (q sandboxes) Retain(d time.Duration) error {
	_, err := q.tx.exec(retainSandboxes, int64(d))
	return err
}

func (q sandboxes) Tally(s *sandbox.Sandbox) error {
	n, err := q.tx.exec(tallySandbox, micros(s.LastActivity), s.ExecCount, int64(s.ExecTime), s.BytesUploaded, s.BytesDownloaded,
		string(s.ID), s.Project, s.Revision)
	if err == nil && n == 0 {
		_, _, err = q.current(s)
	}
	if err == nil {
		s.Revision++
	}
	return err
}

// current returns what is to be replaced, if s is of its revision.
func (q sandboxes) current(s *sandbox.Sandbox) (state, mounted string, err error) {
	var project string
	var revision int64
	found, err := q.tx.row(replacedByIt, []any{string(s.ID)}, &project, &revision, &state, &mounted)
	switch {
	case err != nil:
	case !found || project != s.Project:
		err = noSandbox(s.ID)
	case revision != s.Revision:
		err = fault.New(fault.Conflict, "the sandbox %s changed meanwhile: its revision is %d, not %d", s.ID, revision, s.Revision).
			WithRemedy("read it again and retry")
	}
	return state, mounted, err
}

// replace is Update where an indexed column changes, or where the row does not exist.
func (q sandboxes) replace(s *sandbox.Sandbox, mounts string, args []any) error {
	state, mounted, err := q.current(s)
	if err != nil {
		return err
	}
	n, err := q.tx.exec(moveSandbox, args...)
	if err == nil && n == 0 {
		_, err = q.tx.exec(replaceSandbox, append(args, searchText(s))...)
	}
	if err != nil {
		if q.tx.dialect.unique(err) {
			return fault.Wrap(fault.Exists, err, "the key %q is in use by another sandbox", sandbox.Clip(s.Key, 80))
		}
		return err
	}
	if err := q.moved(s.Project, sandbox.State(state), s.State); err != nil {
		return err
	}
	if mounted == mounts {
		return nil
	}
	if _, err := q.tx.exec(deleteMounts, string(s.ID)); err != nil {
		return err
	}
	return q.insertMounts(s)
}

func (q sandboxes) Delete(id sandbox.ID) error {
	if err := q.tx.ready(true); err != nil {
		return err
	}
	var project, state, mounted, archived string
	found, err := q.tx.row(deleteSandbox, []any{string(id)}, &project, &state, &mounted, &archived)
	if err == nil && !found {
		err = noSandbox(id)
	}
	if err == nil {
		err = q.moved(project, sandbox.State(state), "")
	}
	if err == nil {
		_, err = q.tx.exec(deleteContexts, string(id))
	}
	if err == nil {
		_, err = q.tx.exec(deleteSecrets, string(id))
	}
	if err == nil {
		_, err = q.tx.exec(dropNetworkRequests, string(id))
	}
	if err == nil {
		_, err = q.tx.exec(dropPreviewLinks, string(id))
	}
	if err == nil && mounted != noMounts {
		_, err = q.tx.exec(deleteMounts, string(id))
	}
	if err == nil && archived != "" {
		err = q.disown(id, archived)
	}
	return err
}

// disown has the archive of a sandbox that is deleted removed.
func (q sandboxes) disown(id sandbox.ID, archived string) error {
	a, err := parseArchive(archived)
	if err != nil {
		return q.tx.dialect.explain(q.tx.ctx, err)
	}
	return unownedArchives(q).Put(store.UnownedArchive{ID: a.ID, Sandbox: id})
}

func noSandbox(id sandbox.ID) *fault.Error {
	return fault.New(fault.NotFound, "there is no sandbox %q", sandbox.Clip(string(id), 80))
}

// ofProject returns the conditions on project and states. Of two indexes it shows
// the planner the one that fits: where no stopped ones are wanted, that of the
// others, of which a host has few.
func ofProject(query *store.SandboxQuery, onlyAwake bool) *where {
	var w where
	column := "project"
	if onlyAwake {
		w.and(awake)
		column = unindexed(column)
	}
	if query.Project != "" {
		w.and(column + " = " + w.arg(query.Project))
	}
	in(&w, "state", query.States)
	return &w
}

// matching returns the conditions of a query, without its page.
func (q sandboxes) matching(query *store.SandboxQuery) *where {
	w := ofProject(query, len(query.States) > 0 && !slices.Contains(query.States, sandbox.Stopped))
	q.narrow(w, query)
	return w
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
	var row sandboxRow
	page, more, err := readPage(q.tx, text, args, limit, row.dest(), row.sandbox)
	if err != nil || !more {
		return page, "", err
	}
	last := page[limit-1]
	by := sortingBy(query.Sort)
	return page, cursor{kind: by.kind, project: query.Project, oldest: query.Oldest, number: by.number(last), name: string(last.ID)}.String(), nil
}

// listing is the statement of a page, with one row more to find whether there is a next one.
func (q sandboxes) listing(query *store.SandboxQuery, limit int) (string, []any, error) {
	by := sortingBy(query.Sort)
	begin, err := by.begin(query)
	if err != nil {
		return "", nil, err
	}
	w, page := new(where), ""
	if by.kind == cursorSandboxes {
		w = q.matching(query)
		begin(w)
		page = w.page(limit, query.Offset)
	} else {
		q.sorted(w, query, by, begin, limit)
	}
	text := "SELECT " + sandboxColumns + " FROM sandboxes" + w.String() + ordered(by.column, query.Oldest) + page
	return text, w.args, nil
}

func (q sandboxes) Count(query store.SandboxQuery) (map[sandbox.State]int, error) {
	text, args, stopped := q.counting(&query)
	counts := make(map[sandbox.State]int)
	err := q.tx.each(text, args, func(scan func(...any) error) error {
		var state string
		var n int64
		err := scan(&state, &n)
		counts[sandbox.State(state)] = int(n)
		return err
	})
	if err != nil || !stopped {
		return counts, err
	}
	text, args = countStoppedN, nil
	if query.Project != "" {
		text, args = countStopped, []any{query.Project}
	}
	var n int64
	if _, err := q.tx.row(text, args, &n); err != nil {
		return nil, err
	}
	if n > 0 {
		counts[sandbox.Stopped] = int(n)
	}
	return counts, nil
}

// counting is the statement of a count. Where only project and states are asked for, it leaves
// the stopped ones out and reports whether they belong to the answer.
func (q sandboxes) counting(query *store.SandboxQuery) (text string, args []any, stopped bool) {
	var w *where
	if query.Image == "" && query.ImagePart == "" && query.NamePart == "" && query.ImageDigest == "" && query.Search == "" && len(query.Metadata) == 0 && query.DueBefore.IsZero() && !query.Bounded() {
		stopped = len(query.States) == 0 || slices.Contains(query.States, sandbox.Stopped)
		w = ofProject(query, true)
	} else {
		w = q.matching(query)
	}
	return "SELECT state, COUNT(*) FROM sandboxes" + w.String() + " GROUP BY state", w.args, stopped
}

// sandboxRow is one row as the data base returns it.
type sandboxRow struct {
	s                                                                     sandbox.Sandbox
	memory, disk, pids                                                    int64
	env, metadata, mounts, network, skills, archive, made, previews, acct string
	expires, created, updated, started, stopped, last, since              int64
	autoDelete, autoStart, autoResume, byDefault, sudo                    int64
}

// dest returns where the columns go, in the order of sandboxColumns.
func (r *sandboxRow) dest() []any {
	s := &r.s
	return []any{
		(*string)(&s.ID), &s.Project, &s.Key, &s.Image, &s.ImageDigest, &s.AskedImage, &s.Runtime,
		&s.Limits.CPU, &r.memory, &r.disk, &r.pids, &r.env, &r.metadata,
		(*int64)(&s.IdleTimeout), (*int64)(&s.Retention), &r.expires,
		(*string)(&s.State), (*string)(&s.StopCause), &s.StopDetail, &s.Handle,
		&r.created, &r.updated, &r.started, &r.stopped, &r.last,
		&s.ExecCount, (*int64)(&s.ExecTime), &s.BytesUploaded, &s.BytesDownloaded, &s.Revision,
		&r.mounts, (*string)(&s.OnIdle), &r.autoDelete, (*int64)(&s.TTL), &r.autoStart, &r.autoResume, (*string)(&s.Checkpoints),
		(*string)(&s.Restore), (*string)(&s.Parent), (*string)(&s.ForkedFrom), (*int64)(&s.RunTime), &r.since, &r.network, &r.skills,
		&r.archive, (*int64)(&s.ArchiveAfter), &r.made, &r.byDefault, (*string)(&s.OnExpiry), &r.sudo, &s.TokenRound, &r.previews, &r.acct, &s.FileSalt,
	}
}

// sandbox makes the record of the row that was read last.
func (r *sandboxRow) sandbox() (*sandbox.Sandbox, error) {
	s := r.s
	s.Limits.MemoryMB, s.Limits.DiskMB, s.Limits.Pids = int(r.memory), int(r.disk), int(r.pids)
	s.AutoDelete, s.AutoStart, s.AutoResume, s.RetentionDefault, s.Sudo = r.autoDelete != 0, r.autoStart != 0, r.autoResume != 0, r.byDefault != 0, r.sudo != 0
	for _, t := range []struct {
		to *time.Time
		us int64
	}{
		{&s.ExpiresAt, r.expires}, {&s.CreatedAt, r.created}, {&s.UpdatedAt, r.updated},
		{&s.StartedAt, r.started}, {&s.StoppedAt, r.stopped}, {&s.LastActivity, r.last}, {&s.RunningSince, r.since},
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
	if s.Mounts, err = parseMounts(r.mounts); err != nil {
		return nil, err
	}
	if s.Network, err = parseNetwork(r.network); err != nil {
		return nil, err
	}
	if s.Skills, err = parseSkills(r.skills); err != nil {
		return nil, err
	}
	if s.Archive, err = parseArchive(r.archive); err != nil {
		return nil, err
	}
	if s.Template, err = parseTemplate(r.made); err != nil {
		return nil, err
	}
	if s.Previews, err = parsePreviews(r.previews); err != nil {
		return nil, err
	}
	if s.Account, err = sandbox.ParseAccount(r.acct); err != nil {
		return nil, err
	}
	return &s, nil
}
