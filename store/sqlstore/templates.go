// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// templates is store.Templates within one transaction.
type templates struct{ tx *tx }

const templateColumns = "id, project, name, version, spec, status, snapshot, failure, created_at, created_by, image, inactive"

const (
	nextVersion = "INSERT INTO template_names (project, name, last) VALUES ($1, $2, 1)" +
		" ON CONFLICT (project, name) DO UPDATE SET last = template_names.last + 1"
	lastVersion       = "SELECT last FROM template_names WHERE project = $1 AND name = $2"
	insertTemplate    = "INSERT INTO templates (" + templateColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING"
	getTemplate       = "SELECT " + templateColumns + " FROM templates WHERE id = $1"
	templateVersions  = "SELECT " + templateColumns + " FROM templates WHERE project = $1 AND name = $2 ORDER BY version DESC"
	projectTemplates  = "SELECT " + templateColumns + " FROM templates WHERE project = $1 ORDER BY name, version DESC"
	buildingTemplates = "SELECT " + templateColumns + " FROM templates WHERE status = 'building' ORDER BY id"
	diskTemplates     = "SELECT " + templateColumns + " FROM templates WHERE snapshot = $1 AND snapshot <> '' ORDER BY id"
	imageTemplates    = "SELECT " + templateColumns + " FROM templates WHERE image = $1 AND image <> '' ORDER BY id"
	finishTemplate    = "UPDATE templates SET status = $1, snapshot = $2, failure = $3, image = $4 WHERE id = $5 AND status = 'building'"
	activateTemplate  = "UPDATE templates SET inactive = $1 WHERE id = $2"
	deleteTemplate    = "DELETE FROM templates WHERE id = $1"

	getDefaultTemplate  = "SELECT name FROM template_defaults WHERE project = $1"
	setDefaultTemplate  = "INSERT INTO template_defaults (project, name) VALUES ($1, $2) ON CONFLICT (project) DO UPDATE SET name = excluded.name"
	dropDefaultTemplate = "DELETE FROM template_defaults WHERE project = $1"

	putPoolSize = "INSERT INTO pool_sizes (name, image, limits, template, least, most, refill) VALUES ($1, $2, $3, $4, $5, $6, $7)" +
		" ON CONFLICT (name) DO UPDATE SET image = excluded.image, limits = excluded.limits, template = excluded.template," +
		" least = excluded.least, most = excluded.most, refill = excluded.refill"
	listPoolSizes = "SELECT name, image, limits, template, least, most, refill FROM pool_sizes ORDER BY name"
)

var (
	_ store.Templates = templates{}
	_ store.Pools     = poolSizes{}
)

func (q templates) Insert(t *template.Template) error {
	if _, err := q.Get(t.ID); err == nil {
		return fault.New(fault.Exists, "there is a template with the id %s", sandbox.Clip(t.ID, 80))
	} else if !fault.Is(err, fault.NotFound) {
		return err
	}
	spec, err := encode(t.Spec)
	if err != nil {
		return err
	}
	failure, err := encodeFailure(t.Failure)
	if err != nil {
		return err
	}
	if _, err := q.tx.exec(nextVersion, t.Project, t.Name); err != nil {
		return err
	}
	var n int64
	if _, err := q.tx.row(lastVersion, []any{t.Project, t.Name}, &n); err != nil {
		return err
	}
	t.Version = int(n)
	_, err = q.tx.exec(insertTemplate, t.ID, t.Project, t.Name, n, spec, string(t.Status), string(t.Snapshot), failure, micros(t.CreatedAt), t.CreatedBy, t.Image, truth(t.Inactive))
	return err
}

func (q templates) Get(id string) (*template.Template, error) {
	all, err := q.list(getTemplate, id)
	if err == nil && len(all) == 0 {
		return nil, noTemplate(id)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (q templates) Versions(project, name string) ([]*template.Template, error) {
	return q.list(templateVersions, project, name)
}

func (q templates) List(project string) ([]*template.Template, error) {
	return q.list(projectTemplates, project)
}

func (q templates) Building() ([]*template.Template, error) { return q.list(buildingTemplates) }

func (q templates) OfDisk(snapshot sandbox.ID) ([]*template.Template, error) {
	return q.list(diskTemplates, string(snapshot))
}

func (q templates) OfImage(digest string) ([]*template.Template, error) {
	return q.list(imageTemplates, digest)
}

func (q templates) SetInactive(id string, inactive bool) error {
	n, err := q.tx.exec(activateTemplate, truth(inactive), id)
	if err == nil && n == 0 {
		err = noTemplate(id)
	}
	return err
}

func (q templates) list(text string, args ...any) (out []*template.Template, err error) {
	var row templateRow
	dest := row.dest()
	err = q.tx.each(text, args, func(scan func(...any) error) error {
		row.t = template.Template{}
		if err := scan(dest...); err != nil {
			return err
		}
		t, err := row.template()
		out = append(out, t)
		return err
	})
	return out, err
}

func (q templates) Finish(t *template.Template) error {
	failure, err := encodeFailure(t.Failure)
	if err != nil {
		return err
	}
	n, err := q.tx.exec(finishTemplate, string(t.Status), string(t.Snapshot), failure, t.Image, t.ID)
	return q.building(t.ID, n, err)
}

// building returns the error of a change of a version that is not being built.
func (q templates) building(id string, n int64, err error) error {
	if err != nil || n > 0 {
		return err
	}
	if _, err := q.Get(id); err != nil {
		return err
	}
	return fault.New(fault.Conflict, "the template %s is not being built", sandbox.Clip(id, 80))
}

func (q templates) Delete(id string) error {
	n, err := q.tx.exec(deleteTemplate, id)
	if err == nil && n == 0 {
		err = noTemplate(id)
	}
	return err
}

func (q templates) Default(project string) (name string, err error) {
	_, err = q.tx.row(getDefaultTemplate, []any{project}, &name)
	return name, err
}

func (q templates) SetDefault(project, name string) error {
	if name == "" {
		_, err := q.tx.exec(dropDefaultTemplate, project)
		return err
	}
	_, err := q.tx.exec(setDefaultTemplate, project, name)
	return err
}

func noTemplate(ref string) *fault.Error {
	return fault.New(fault.NotFound, "there is no template %q", sandbox.Clip(ref, 80)).WithRemedy("list the templates to see which there are")
}

// templateRow is one row as the data base returns it.
type templateRow struct {
	t             template.Template
	spec, failure string
	version       int64
	created       int64
	inactive      int64
}

func (r *templateRow) dest() []any {
	t := &r.t
	return []any{&t.ID, &t.Project, &t.Name, &r.version, &r.spec, (*string)(&t.Status), (*string)(&t.Snapshot), &r.failure, &r.created, &t.CreatedBy, &t.Image, &r.inactive}
}

func (r *templateRow) template() (*template.Template, error) {
	t := r.t
	t.Version, t.CreatedAt, t.Inactive = int(r.version), fromMicros(r.created), r.inactive != 0
	if err := decode(r.spec, &t.Spec); err != nil {
		return nil, err
	}
	if r.failure != "" {
		t.Failure = new(template.Failure)
		if err := decode(r.failure, t.Failure); err != nil {
			return nil, err
		}
	}
	return &t, nil
}

func encodeFailure(f *template.Failure) (string, error) {
	if f == nil {
		return "", nil
	}
	return encode(f)
}

// encode writes a value of which no query asks for a part. Its texts are UTF-8.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "a record cannot be written")
	}
	return string(b), nil
}

func decode(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fault.Wrap(fault.Internal, err, "a record is not what was written")
	}
	return nil
}

// madeOf is the column of a sandbox's Template. Time is in microseconds.
type madeOf struct {
	ID       string         `json:"id,omitempty"`
	Name     string         `json:"name,omitempty"`
	Version  int            `json:"version,omitempty"`
	ChosenBy sandbox.Choice `json:"by"`
	Start    *sandbox.Start `json:"start,omitempty"`
	Of       int64          `json:"of,omitempty"`
	At       int64          `json:"at,omitempty"`
	OK       bool           `json:"ok,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Output   string         `json:"output,omitempty"`
}

func templateText(t *sandbox.Template) string {
	if t == nil {
		return ""
	}
	m := madeOf{
		ID: t.ID, Name: t.Name, Version: t.Version, ChosenBy: t.ChosenBy, Of: micros(t.Ready.Of), At: micros(t.Ready.At), OK: t.Ready.OK,
		Reason: strings.ToValidUTF8(t.Ready.Reason, "\uFFFD"), Output: strings.ToValidUTF8(t.Ready.Output, "\uFFFD"),
	}
	if t.Start != (sandbox.Start{}) {
		m.Start = &t.Start
	}
	text, err := encode(m)
	if err != nil { // texts and numbers have a form
		panic(err)
	}
	return text
}

func parseTemplate(text string) (*sandbox.Template, error) {
	if text == "" {
		return nil, nil
	}
	var m madeOf
	if err := decode(text, &m); err != nil {
		return nil, err
	}
	t := &sandbox.Template{
		ID: m.ID, Name: m.Name, Version: m.Version, ChosenBy: m.ChosenBy,
		Ready: sandbox.Readiness{Of: fromMicros(m.Of), At: fromMicros(m.At), OK: m.OK, Reason: m.Reason, Output: m.Output},
	}
	if m.Start != nil {
		t.Start = *m.Start
	}
	return t, nil
}

// poolSizes is store.Pools within one transaction.
type poolSizes struct{ tx *tx }

func (q poolSizes) Put(p store.PoolSize) error {
	limits, err := encode(p.Limits)
	if err != nil {
		return err
	}
	_, err = q.tx.exec(putPoolSize, p.Name, p.Image, limits, p.Template, int64(p.Min), int64(p.Max), int64(p.Refill))
	return err
}

func (q poolSizes) List() (out []store.PoolSize, err error) {
	err = q.tx.each(listPoolSizes, nil, func(scan func(...any) error) error {
		var p store.PoolSize
		var limits string
		var least, most, refill int64
		if err := scan(&p.Name, &p.Image, &limits, &p.Template, &least, &most, &refill); err != nil {
			return err
		}
		p.Min, p.Max, p.Refill = int(least), int(most), int(refill)
		if err := decode(limits, &p.Limits); err != nil {
			return err
		}
		out = append(out, p)
		return nil
	})
	return out, err
}
