// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"math"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func (t *keptTx) Sandboxes() store.Sandboxes { return keptSandboxes{t.Tx.Sandboxes(), t} }
func (t *keptTx) Snapshots() store.Snapshots { return keptSnapshots{t.Tx.Snapshots(), t} }
func (t *keptTx) Volumes() store.Volumes     { return keptVolumes{t.Tx.Volumes(), t} }
func (t *keptTx) Events() store.Events       { return keptEvents{t.Tx.Events(), t} }
func (t *keptTx) Tokens() store.Tokens       { return keptTokens{t.Tx.Tokens(), t} }
func (t *keptTx) Projects() store.Projects   { return keptProjects{t.Tx.Projects(), t} }
func (t *keptTx) Usage() store.Usage         { return keptUsage{t.Tx.Usage(), t} }

// bound reports whether what a project takes of sandboxes, snapshots and volumes is to be looked at.
func (t *keptTx) bound(name string) (bool, error) {
	p, err := t.project(name)
	if err != nil {
		return false, err
	}
	q := project.Amounts{}
	if p != nil {
		q = p.Quotas
	}
	q[project.Commands] = 0
	return q != (project.Amounts{}) || len(t.k.host) > 0 || t.k.o.Admit != nil, nil
}

// check returns the refusal of a change of records that is made already, if by it the project took more of a
// resource, and takes more than it may.
func (t *keptTx) check(name string, before, after project.Amounts) error {
	p, err := t.project(name)
	if err != nil {
		return err
	}
	if p != nil {
		if r, use, err := t.over(p.Quotas, p.Name, before, after); err != nil || r >= 0 {
			if err == nil {
				more := after[r] - before[r]
				err = p.Refuse(r, use-more, more, t.k.o.Now())
			}
			return err
		}
		if after[project.CPU] > before[project.CPU] || after[project.Memory] > before[project.Memory] {
			if err := t.afford(p); err != nil {
				return err
			}
		}
	}
	if t.k.o.Admit != nil && after[project.Running] > before[project.Running] {
		if err := t.k.o.Admit(); err != nil {
			return err
		}
	}
	r, _, err := t.over(t.k.o.Host, "", before, after)
	if err == nil && r >= 0 {
		e := fault.New(fault.Exhausted, "this server has promised all projects together what it may of %s, %v, and this needs %v more", r, t.k.o.Host[r], after[r]-before[r])
		if r != project.Disk {
			e.Retry = 10 * time.Second
		}
		err = e.WithRemedy("stop or delete sandboxes that are not needed, ask for less, or try again later; its operator sets the bound by overcommit")
	}
	return err
}

// over returns the first resource of which there is more than a bound, by what the change took more of; less
// than zero: none.
func (t *keptTx) over(bound project.Amounts, of string, before, after project.Amounts) (r project.Resource, use float64, err error) {
	for _, r := range project.Resources() {
		if bound[r] == 0 || after[r] <= before[r] {
			continue
		}
		all, err := t.use(of)
		if err != nil {
			return -1, 0, err
		}
		if project.Over(all[r], bound[r]) {
			return r, all[r], nil
		}
	}
	return -1, 0, nil
}

type keptSandboxes struct {
	store.Sandboxes
	t *keptTx
}

func (q keptSandboxes) Insert(s *sandbox.Sandbox) error {
	if err := q.Sandboxes.Insert(s); err != nil {
		return err
	}
	q.t.add(s.Project, project.Amounts{}, project.Of(s))
	if own(s.Project) {
		return nil
	}
	if err := q.t.ensure(s.Project); err != nil {
		return err
	}
	return q.t.check(s.Project, project.Amounts{}, project.Of(s))
}

func (q keptSandboxes) Update(s *sandbox.Sandbox) error {
	look, err := q.t.follows(s.Project)
	if err != nil {
		return err
	}
	if !look {
		return q.Sandboxes.Update(s)
	}
	_, before, err := q.t.Tx.Projects().Taken(s.ID)
	if err != nil {
		return err
	}
	if err := q.Sandboxes.Update(s); err != nil {
		return err
	}
	after := project.Of(s)
	q.t.add(s.Project, before, after)
	if own(s.Project) || s.State == sandbox.Stopping || s.State == sandbox.Deleting { // which give back in the end
		return nil
	}
	return q.t.check(s.Project, before, after)
}

func (q keptSandboxes) Delete(id sandbox.ID) error {
	q.t.gone = append(q.t.gone, id)
	if !q.t.anySum() {
		return q.Sandboxes.Delete(id)
	}
	of, before, err := q.t.Tx.Projects().Taken(id)
	if err != nil {
		return err
	}
	if err := q.Sandboxes.Delete(id); err != nil {
		return err
	}
	q.t.add(of, before, project.Amounts{})
	return nil
}

type keptSnapshots struct {
	store.Snapshots
	t *keptTx
}

// Update counts a snapshot when it is ready: intents may be of what nobody ever sees. By then one that it replaces is
// none any more.
func (q keptSnapshots) Update(s *sandbox.Snapshot) error {
	look, err := q.t.follows(s.Project)
	if err != nil {
		return err
	}
	if !look {
		return q.Snapshots.Update(s)
	}
	old, err := q.Get(s.ID)
	if err != nil {
		return err
	}
	if err := q.Snapshots.Update(s); err != nil {
		return err
	}
	before, after := ofSnapshot(old, old.State), ofSnapshot(old, s.State)
	q.t.add(old.Project, before, after)
	if own(old.Project) {
		return nil
	}
	return q.t.check(old.Project, before, after)
}

func (q keptSnapshots) Insert(s *sandbox.Snapshot) error {
	err := q.Snapshots.Insert(s)
	if err == nil {
		q.t.add(s.Project, project.Amounts{}, ofSnapshot(s, s.State))
	}
	return err
}

func (q keptSnapshots) Delete(id sandbox.ID) error {
	if !q.t.anySum() {
		return q.Snapshots.Delete(id)
	}
	old, err := q.Get(id)
	if err != nil {
		return err
	}
	if err := q.Snapshots.Delete(id); err != nil {
		return err
	}
	q.t.add(old.Project, ofSnapshot(old, old.State), project.Amounts{})
	return nil
}

// ofSnapshot is what a snapshot takes in a state.
func ofSnapshot(s *sandbox.Snapshot, in sandbox.SnapshotState) (a project.Amounts) {
	if !s.Auto && in == sandbox.SnapshotReady {
		a[project.Snapshots] = 1
	}
	return a
}

type keptVolumes struct {
	store.Volumes
	t *keptTx
}

func (q keptVolumes) Insert(v *sandbox.Volume) error {
	if err := q.t.sized(v); err != nil {
		return err
	}
	if err := q.Volumes.Insert(v); err != nil {
		return err
	}
	q.t.add(v.Project, project.Amounts{}, ofVolume(v))
	if own(v.Project) {
		return nil
	}
	if err := q.t.ensure(v.Project); err != nil {
		return err
	}
	return q.t.check(v.Project, project.Amounts{}, ofVolume(v))
}

func (q keptVolumes) Update(v *sandbox.Volume) error {
	look, err := q.t.follows(v.Project)
	if err != nil {
		return err
	}
	if !look {
		return q.Volumes.Update(v)
	}
	old, err := q.Get(v.ID)
	if err != nil {
		return err
	}
	if old.SizeMB != v.SizeMB {
		if err := q.t.sized(v); err != nil {
			return err
		}
	}
	if err := q.Volumes.Update(v); err != nil {
		return err
	}
	q.t.add(old.Project, ofVolume(old), ofVolume(v))
	if own(old.Project) {
		return nil
	}
	return q.t.check(old.Project, ofVolume(old), ofVolume(v))
}

func (q keptVolumes) Delete(id sandbox.ID) error {
	if !q.t.anySum() {
		return q.Volumes.Delete(id)
	}
	old, err := q.Get(id)
	if err != nil {
		return err
	}
	if err := q.Volumes.Delete(id); err != nil {
		return err
	}
	q.t.add(old.Project, ofVolume(old), project.Amounts{})
	return nil
}

func ofVolume(v *sandbox.Volume) project.Amounts {
	return project.Amounts{project.Volumes: 1, project.Disk: float64(v.SizeMB)}
}

// sized refuses a volume without a size where disk is bounded: it could hold any amount.
func (t *keptTx) sized(v *sandbox.Volume) error {
	p, err := t.project(v.Project)
	if err != nil || v.SizeMB > 0 || p == nil || p.Quotas[project.Disk] == 0 {
		return err
	}
	return fault.New(fault.Exhausted, "the project %s has the quota %s, and a volume without a size has no bound", p.Name, project.Disk).
		WithRemedy("give the volume a size (size_mb)")
}

type keptEvents struct {
	store.Events
	t *keptTx
}

// Append counts commands, cells and terminals when they begin. What the server begins by itself is not counted.
func (q keptEvents) Append(e *sandbox.Event) error {
	if err := q.Events.Append(e); err != nil {
		return err
	}
	if e.Done || e.ProcessID == "" || e.Via == "system" || e.Type != sandbox.EventExec && e.Type != sandbox.EventCode && e.Type != sandbox.EventTerminal {
		return nil
	}
	p, err := q.t.project(e.Project)
	if err != nil || p == nil {
		return err
	}
	if err := q.t.afford(p); err != nil || p.Quotas[project.Commands] == 0 {
		return err
	}
	now := q.t.k.o.Now()
	n, err := q.t.Tx.Projects().AddCommand(p.Name, project.Day(now))
	if err == nil && float64(n) > p.Quotas[project.Commands] {
		err = p.Refuse(project.Commands, math.Min(float64(n-1), p.Quotas[project.Commands]), 1, now)
	}
	return err
}

type keptTokens struct {
	store.Tokens
	t *keptTx
}

// Insert makes the project of the token, if there is none.
func (q keptTokens) Insert(t *access.Token) error {
	if err := q.Tokens.Insert(t); err != nil {
		return err
	}
	return q.t.ensure(t.Project)
}

type keptProjects struct {
	store.Projects
	t *keptTx
}

func (q keptProjects) Insert(p *project.Project) error {
	q.t.changed = true
	return q.Projects.Insert(p)
}

func (q keptProjects) Update(p *project.Project) error {
	q.t.changed = true
	return q.Projects.Update(p)
}

func (q keptProjects) Delete(name string) error {
	q.t.changed = true
	return q.Projects.Delete(name)
}
