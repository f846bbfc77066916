// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/skill"
	"sandpit.dev/store"
)

// skills is store.Skills within one transaction.
type skills struct{ tx *tx }

const skillColumns = "id, project, name, description, author, version, license, compatibility, tags, tools, source, digest, size, files, created_at, updated_at, created_by"

const (
	insertSkill   = "INSERT INTO skills (" + skillColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING"
	getSkill      = "SELECT " + skillColumns + " FROM skills WHERE id = $1"
	skillByName   = "SELECT " + skillColumns + " FROM skills WHERE project = $1 AND name = $2"
	projectSkills = "SELECT " + skillColumns + " FROM skills WHERE project = $1 ORDER BY name"
	updateSkill   = "UPDATE skills SET description = $1, author = $2, version = $3, license = $4, compatibility = $5, tags = $6, tools = $7," +
		" source = $8, digest = $9, size = $10, files = $11, updated_at = $12 WHERE id = $13"
	deleteSkill = "DELETE FROM skills WHERE id = $1"
	skillUsage  = "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM skills WHERE project = $1"

	putPackage    = "INSERT INTO skill_packages (skill, text, data) VALUES ($1, $2, $3) ON CONFLICT (skill) DO UPDATE SET text = excluded.text, data = excluded.data"
	getPackage    = "SELECT data FROM skill_packages WHERE skill = $1"
	getSkillText  = "SELECT text FROM skill_packages WHERE skill = $1"
	deletePackage = "DELETE FROM skill_packages WHERE skill = $1"
)

var _ store.Skills = skills{}

func (q skills) Insert(s *skill.Skill, pkg []byte) error {
	n, err := q.tx.exec(insertSkill, s.ID, s.Project, s.Name, s.Description, s.Author, s.Version, s.License, s.Compatibility,
		listText(s.Tags), listText(s.AllowedTools), string(s.Source), s.Digest, s.Size, skillFilesText(s.Files),
		micros(s.CreatedAt), micros(s.UpdatedAt), s.CreatedBy)
	if err != nil {
		return err
	}
	if n == 1 {
		_, err = q.tx.exec(putPackage, s.ID, s.Text, pkg)
		return err
	}
	if _, err := q.Get(s.ID); err == nil {
		return fault.New(fault.Exists, "there is a skill with the id %s", sandbox.Clip(s.ID, 80))
	} else if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.New(fault.Exists, "the project %s has a skill named %q", sandbox.Clip(s.Project, 80), sandbox.Clip(s.Name, 80)).
		WithRemedy("replace that one, delete it, or choose another name")
}

func (q skills) Get(id string) (*skill.Skill, error) { return q.one(id, getSkill, id) }

func (q skills) ByName(project, name string) (*skill.Skill, error) {
	return q.one(name, skillByName, project, name)
}

// one returns the row with its text.
func (q skills) one(ref, text string, args ...any) (*skill.Skill, error) {
	var row skillRow
	found, err := q.tx.row(text, args, row.dest()...)
	if err == nil && !found {
		err = noSkill(ref)
	}
	if err != nil {
		return nil, err
	}
	s, err := row.skill()
	if err != nil {
		return nil, q.tx.dialect.explain(q.tx.ctx, err)
	}
	_, err = q.tx.row(getSkillText, []any{s.ID}, &s.Text)
	return s, err
}

func (q skills) List(project string) ([]*skill.Skill, error) {
	var out []*skill.Skill
	var row skillRow
	dest := row.dest()
	err := q.tx.each(projectSkills, []any{project}, func(scan func(...any) error) error {
		if err := scan(dest...); err != nil {
			return err
		}
		s, err := row.skill()
		out = append(out, s)
		return err
	})
	return out, err
}

func (q skills) Package(id string) ([]byte, error) {
	var data []byte
	found, err := q.tx.row(getPackage, []any{id}, &data)
	if err == nil && !found {
		err = noSkill(id)
	}
	return data, err
}

func (q skills) Replace(s *skill.Skill, pkg []byte) error {
	n, err := q.tx.exec(updateSkill, s.Description, s.Author, s.Version, s.License, s.Compatibility, listText(s.Tags), listText(s.AllowedTools),
		string(s.Source), s.Digest, s.Size, skillFilesText(s.Files), micros(s.UpdatedAt), s.ID)
	if err == nil && n == 0 {
		err = noSkill(s.ID)
	}
	if err == nil {
		_, err = q.tx.exec(putPackage, s.ID, s.Text, pkg)
	}
	return err
}

func (q skills) Delete(id string) error {
	n, err := q.tx.exec(deleteSkill, id)
	if err == nil && n == 0 {
		err = noSkill(id)
	}
	if err == nil {
		_, err = q.tx.exec(deletePackage, id)
	}
	return err
}

func (q skills) Usage(project string) (n int, bytes int64, err error) {
	var count int64
	_, err = q.tx.row(skillUsage, []any{project}, &count, &bytes)
	return int(count), bytes, err
}

func noSkill(ref string) *fault.Error {
	return fault.New(fault.NotFound, "there is no skill %q", sandbox.Clip(ref, 80)).WithRemedy("list the skills to see which there are")
}

// skillRow is one row as the data base returns it.
type skillRow struct {
	s                  skill.Skill
	tags, tools, files string
	created, updated   int64
}

func (r *skillRow) dest() []any {
	s := &r.s
	return []any{
		&s.ID, &s.Project, &s.Name, &s.Description, &s.Author, &s.Version, &s.License, &s.Compatibility, &r.tags, &r.tools,
		(*string)(&s.Source), &s.Digest, &s.Size, &r.files, &r.created, &r.updated, &s.CreatedBy,
	}
}

func (r *skillRow) skill() (*skill.Skill, error) {
	s := r.s
	s.CreatedAt, s.UpdatedAt = fromMicros(r.created), fromMicros(r.updated)
	var err error
	if s.Tags, err = parseList(r.tags); err != nil {
		return nil, err
	}
	if s.AllowedTools, err = parseList(r.tools); err != nil {
		return nil, err
	}
	s.Files, err = parseSkillFiles(r.files)
	return &s, err
}
