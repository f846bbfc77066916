// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"

	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// projects is store.Projects within one transaction.
type projects struct{ tx *tx }

const (
	projectColumns = "name, created_at, created_by, quotas"
	insertProject  = "INSERT INTO projects (" + projectColumns + ") VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
	getProject     = "SELECT " + projectColumns + " FROM projects WHERE name = $1"
	allProjects    = "SELECT " + projectColumns + " FROM projects ORDER BY name"
	updateProject  = "UPDATE projects SET quotas = $1 WHERE name = $2"
	deleteProject  = "DELETE FROM projects WHERE name = $1"
	dropCommands   = "DELETE FROM project_commands WHERE project = $1"

	// What [project.Runs] and [project.Of] say of one sandbox.
	runs1 = "(state IN ('creating', 'running', 'pausing', 'resuming', 'stopping', 'starting') OR state = 'restoring' AND stop_cause = 'restore')"
	useOf = "SELECT COUNT(*)," +
		" COALESCE(SUM(CASE WHEN " + runs1 + " THEN 1 ELSE 0 END), 0)," +
		" COALESCE(SUM(CASE WHEN " + runs1 + " THEN cpu ELSE 0.0 END), 0.0)," +
		" COALESCE(SUM(CASE WHEN " + runs1 + " THEN memory_mb ELSE 0 END), 0)," +
		" COALESCE(SUM(CASE WHEN " + runs1 + " THEN pids ELSE 0 END), 0)," +
		" COALESCE(SUM(CASE WHEN state <> 'archived' THEN disk_mb ELSE 0 END), 0) FROM sandboxes"
	useOfSnapshots = "SELECT COUNT(*) FROM snapshots WHERE auto = 0 AND state = 'ready'"
	useOfVolumes   = "SELECT COUNT(*), COALESCE(SUM(size_mb), 0) FROM volumes"

	takenOf = "SELECT project, state, stop_cause, cpu, memory_mb, pids, disk_mb FROM sandboxes WHERE id = $1"

	addCommand = "INSERT INTO project_commands (project, day, n) VALUES ($1, $2, 1) ON CONFLICT (project) DO UPDATE SET" +
		" n = CASE WHEN project_commands.day = excluded.day THEN project_commands.n + 1 ELSE 1 END, day = excluded.day"
	commandsOf = "SELECT n FROM project_commands WHERE project = $1 AND day = $2"
)

var _ store.Projects = projects{}

func (q projects) Insert(p *project.Project) error {
	n, err := q.tx.exec(insertProject, p.Name, micros(p.CreatedAt), p.CreatedBy, quotasText(p.Quotas))
	if err == nil && n == 0 {
		err = fault.New(fault.Exists, "there is a project named %q", sandbox.Clip(p.Name, 80)).WithRemedy("choose another name, or change that one")
	}
	return err
}

func (q projects) Get(name string) (*project.Project, error) {
	var r projectRow
	found, err := q.tx.row(getProject, []any{name}, r.dest()...)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noProject(name)
	}
	return r.project()
}

func (q projects) List() (all []*project.Project, err error) {
	err = q.tx.each(allProjects, nil, func(scan func(...any) error) error {
		var r projectRow
		if err := scan(r.dest()...); err != nil {
			return err
		}
		p, err := r.project()
		all = append(all, p)
		return err
	})
	return all, err
}

func (q projects) Update(p *project.Project) error {
	n, err := q.tx.exec(updateProject, quotasText(p.Quotas), p.Name)
	if err == nil && n == 0 {
		err = noProject(p.Name)
	}
	return err
}

func (q projects) Delete(name string) error {
	n, err := q.tx.exec(deleteProject, name)
	if err == nil && n == 0 {
		err = noProject(name)
	}
	if err == nil {
		_, err = q.tx.exec(dropCommands, name)
	}
	return err
}

func (q projects) Use(name string) (a project.Amounts, err error) {
	var boxes, running, memory, pids, disk, snapshots, volumes, held int64
	read := func(text, of string, dest ...any) {
		var args []any
		if name != "" {
			text, args = text+of, []any{name}
		}
		if err == nil {
			_, err = q.tx.row(text, args, dest...)
		}
	}
	read(useOf, " WHERE project = $1", &boxes, &running, &a[project.CPU], &memory, &pids, &disk)
	read(useOfSnapshots, " AND project = $1", &snapshots)
	read(useOfVolumes, " WHERE project = $1", &volumes, &held)
	for r, n := range map[project.Resource]int64{
		project.Sandboxes: boxes, project.Running: running, project.Memory: memory, project.Processes: pids,
		project.Disk: disk + held, project.Snapshots: snapshots, project.Volumes: volumes,
	} {
		a[r] = float64(n)
	}
	return a, err
}

func (q projects) Taken(id sandbox.ID) (string, project.Amounts, error) {
	var s sandbox.Sandbox
	var memory, pids, disk int64
	found, err := q.tx.row(takenOf, []any{string(id)}, &s.Project, (*string)(&s.State), (*string)(&s.StopCause), &s.Limits.CPU, &memory, &pids, &disk)
	if err != nil || !found {
		return "", project.Amounts{}, err
	}
	s.Limits.MemoryMB, s.Limits.Pids, s.Limits.DiskMB = int(memory), int(pids), int(disk)
	return s.Project, project.Of(&s), nil
}

func (q projects) Contents(name string) (map[string]int, error) {
	out := make(map[string]int)
	for _, kind := range []string{"sandboxes", "snapshots", "volumes", "tokens", "secrets", "skills", "templates", "webhooks"} {
		var n int64
		if _, err := q.tx.row("SELECT COUNT(*) FROM "+kind+" WHERE project = $1", []any{name}, &n); err != nil {
			return nil, err
		}
		if n > 0 {
			out[kind] = int(n)
		}
	}
	return out, nil
}

func (q projects) AddCommand(name string, day int64) (int64, error) {
	if _, err := q.tx.exec(addCommand, name, day); err != nil {
		return 0, err
	}
	return q.Commands(name, day)
}

func (q projects) Commands(name string, day int64) (n int64, err error) {
	_, err = q.tx.row(commandsOf, []any{name, day}, &n)
	return n, err
}

func noProject(name string) error {
	return fault.New(fault.NotFound, "there is no project %q", sandbox.Clip(name, 80)).
		WithRemedy("make it first (sandpit project create), or list those that there are (sandpit project ls)")
}

// projectRow is one row as the data base returns it.
type projectRow struct {
	p       project.Project
	quotas  string
	created int64
}

func (r *projectRow) dest() []any {
	return []any{&r.p.Name, &r.created, &r.p.CreatedBy, &r.quotas}
}

// project passes over quotas that it does not know: a newer server wrote them.
func (r *projectRow) project() (*project.Project, error) {
	p := r.p
	p.CreatedAt = fromMicros(r.created)
	var byName map[string]float64
	if err := json.Unmarshal([]byte(r.quotas), &byName); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the quotas of the project %s cannot be read", p.Name)
	}
	for name, v := range byName {
		if k, ok := project.Named(name); ok {
			p.Quotas[k] = v
		}
	}
	return &p, nil
}

func quotasText(a project.Amounts) string {
	b, err := json.Marshal(a.ByName())
	if err != nil { // of numbers that are none, which no check lets through
		return "{}"
	}
	return string(b)
}
