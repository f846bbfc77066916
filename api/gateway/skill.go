// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/skill"
)

// skillCost is what a byte of a package costs while it is read: as it came, unpacked, and packed.
const skillCost = 4

// skillShape is a skill by the SDK's model.
type skillShape struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	SourceType  string         `json:"source_type"` // imported or manual
	SourceURL   *string        `json:"source_url"`  // always null: skills come by upload
	Metadata    map[string]any `json:"skill_metadata"`
	Size        int64          `json:"package_size_bytes"`
	Text        *string        `json:"skill_md_content"` // null in lists
	Published   bool           `json:"published"`        // always false: there is no marketplace
	CreatedAt   time.Time      `json:"created_at"`
	UpdatedAt   time.Time      `json:"updated_at"`
}

func skillOf(k *skill.Skill, text bool) skillShape {
	out := skillShape{
		ID: k.ID, Name: k.Name, Description: k.Description, SourceType: string(k.Source), Metadata: map[string]any{"tags": append([]string{}, k.Tags...), "allowed_tools": append([]string{}, k.AllowedTools...)},
		Size: k.Size, CreatedAt: k.CreatedAt.UTC(), UpdatedAt: k.UpdatedAt.UTC(),
	}
	for name, value := range map[string]string{"author": k.Author, "version": k.Version, "license": k.License, "compatibility": k.Compatibility} {
		if value != "" {
			out.Metadata[name] = value
		}
	}
	if text {
		out.Text = &k.Text
	}
	return out
}

type listSkills struct {
	Search    *string `query:"search"`
	Source    *string `query:"source_type"`
	Published *bool   `query:"published"`
	Offset    *int    `query:"offset"`
	Limit     *int    `query:"limit"`
}

type skillList struct {
	Items []skillShape `json:"items"`
	Total int          `json:"total"`
}

func (a *API) listSkills(ctx context.Context, c *httpapi.Call, in *listSkills) (skillList, error) {
	offset, limit := given(in.Offset), maxSkills
	if in.Limit != nil {
		limit = *in.Limit
	}
	if offset < 0 {
		return skillList{}, fault.InvalidField("offset", "%d is less than 0", offset)
	}
	if limit < 1 || limit > maxSkills {
		return skillList{}, fault.InvalidField("limit", "%d is outside 1 to %d", limit, maxSkills)
	}
	out := skillList{Items: []skillShape{}}
	if given(in.Published) {
		return out, nil // none is
	}
	all, err := a.Skills.ListSkills(ctx, c.Caller, httpapi.Given(in.Search))
	if err != nil {
		return skillList{}, err
	}
	for _, k := range all {
		if in.Source != nil && string(k.Source) != *in.Source {
			continue
		}
		if out.Total >= offset && len(out.Items) < limit {
			out.Items = append(out.Items, skillOf(k, false))
		}
		out.Total++
	}
	return out, nil
}

// maxSkills is the most that a list has.
const maxSkills = 1000

type createSkill struct {
	Body struct {
		Name        *string        `json:"name"`
		Description *string        `json:"description"`
		Text        string         `json:"skill_md_content"`
		Metadata    map[string]any `json:"skill_metadata"`
	}
}

func (a *API) createSkill(ctx context.Context, c *httpapi.Call, in *createSkill) (skillShape, error) {
	b := &in.Body
	if len(b.Metadata) > 0 {
		return skillShape{}, unsupported("skill_metadata", "is what the front matter of skill_md_content says here").WithRemedy("write it into the front matter")
	}
	text, err := skill.OfText(b.Text, b.Name, b.Description)
	if err != nil {
		return skillShape{}, err
	}
	return a.addSkill(ctx, c, []byte(text), skill.Manual)
}

// addSkill answers 200 where the project has the same skill already.
func (a *API) addSkill(ctx context.Context, c *httpapi.Call, data []byte, from skill.Source) (skillShape, error) {
	k, added, err := a.Skills.AddSkill(ctx, c.Caller, data, from)
	if err != nil {
		return skillShape{}, err
	}
	if !added {
		c.Status = http.StatusOK
	}
	return skillOf(k, true), nil
}

func (a *API) uploadSkill(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (skillShape, error) {
	data, err := c.Upload(ctx, "file", skill.MaxBytes, skillCost)
	if err != nil {
		return skillShape{}, err
	}
	return a.addSkill(ctx, c, data, skill.Imported)
}

type bySkill struct {
	Skill string `path:"skill"` // its id or its name
}

func (a *API) getSkill(ctx context.Context, c *httpapi.Call, in *bySkill) (skillShape, error) {
	k, err := a.Skills.Skill(ctx, c.Caller, in.Skill)
	if err != nil {
		return skillShape{}, err
	}
	return skillOf(k, true), nil
}

type updateSkill struct {
	bySkill
	Body struct {
		Name        *string        `json:"name"`
		Description *string        `json:"description"`
		Text        *string        `json:"skill_md_content"`
		Metadata    map[string]any `json:"skill_metadata"`
		Visible     *bool          `json:"portal_visible"`
		Category    *string        `json:"portal_category"`
		Tags        []string       `json:"portal_tags"`
	}
}

// updateSkill replaces the text of a skill; the files beside it stay.
func (a *API) updateSkill(ctx context.Context, c *httpapi.Call, in *updateSkill) (skillShape, error) {
	b := &in.Body
	switch {
	case len(b.Metadata) > 0:
		return skillShape{}, unsupported("skill_metadata", "is what the front matter of skill_md_content says here").WithRemedy("send skill_md_content with the front matter that it is to have")
	case given(b.Visible) || b.Category != nil || len(b.Tags) > 0:
		return skillShape{}, unsupported("portal_visible", "there is no portal here").WithRemedy("leave the fields of the portal out")
	case b.Text == nil && b.Description != nil:
		return skillShape{}, unsupported("description", "is what the front matter of skill_md_content says here").WithRemedy("send skill_md_content with the front matter that it is to have")
	}
	was, err := a.Skills.Skill(ctx, c.Caller, in.Skill)
	if err != nil {
		return skillShape{}, err
	}
	if b.Name != nil && *b.Name != was.Name {
		return skillShape{}, unsupported("name", "a skill keeps its name").WithRemedy("add it as another skill, and delete this one")
	}
	if b.Text == nil {
		return skillOf(was, true), nil
	}
	text, err := skill.OfText(*b.Text, &was.Name, b.Description)
	if err != nil {
		return skillShape{}, err
	}
	if err := c.Reserve(ctx, skillCost*was.Size); err != nil {
		return skillShape{}, err
	}
	_, data, err := a.Skills.SkillPackage(ctx, c.Caller, was.ID)
	if err != nil {
		return skillShape{}, err
	}
	p, err := skill.Read(data)
	if err == nil {
		p, err = p.WithText(text)
	}
	if err == nil {
		data, err = p.Zip()
	}
	if err != nil {
		return skillShape{}, err
	}
	k, err := a.Skills.ReplaceSkill(ctx, c.Caller, was.ID, data, was.Source)
	if err != nil {
		return skillShape{}, err
	}
	return skillOf(k, true), nil
}

func (a *API) replaceSkillPackage(ctx context.Context, c *httpapi.Call, in *bySkill) (skillShape, error) {
	data, err := c.Upload(ctx, "file", skill.MaxBytes, skillCost)
	if err != nil {
		return skillShape{}, err
	}
	k, err := a.Skills.ReplaceSkill(ctx, c.Caller, in.Skill, data, skill.Imported)
	if err != nil {
		return skillShape{}, err
	}
	return skillOf(k, true), nil
}

func (a *API) deleteSkill(ctx context.Context, c *httpapi.Call, in *bySkill) (httpapi.None, error) {
	return httpapi.None{}, a.Skills.DeleteSkill(ctx, c.Caller, in.Skill)
}

type ofSkill struct {
	bySkill
	Part string `path:"part"`
}

// readOfSkill answers two routes of the SDK's that a router cannot tell apart: the package of a skill, and the list of a
// catalogue.
func (a *API) readOfSkill(ctx context.Context, c *httpapi.Call, in *ofSkill) error {
	switch {
	case in.Skill == "catalog":
		list, err := a.skillCatalog(in.Part)
		if err != nil {
			return err
		}
		return c.Answer(list)
	case in.Part == "package":
		return a.sendPackage(ctx, c, in.Skill)
	}
	return fault.New(fault.NotFound, "a skill has no %q here", sandbox.Clip(in.Part, 80))
}

// sendPackage sends a skill as a ZIP archive.
func (a *API) sendPackage(ctx context.Context, c *httpapi.Call, ref string) error {
	k, err := a.Skills.Skill(ctx, c.Caller, ref)
	if err == nil {
		err = c.Reserve(ctx, k.Size)
	}
	if err != nil {
		return err
	}
	k, data, err := a.Skills.SkillPackage(ctx, c.Caller, k.ID)
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", `attachment; filename="`+k.Name+`.skill"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	c.W.WriteHeader(http.StatusOK)
	w := c.StallWriter()
	defer w.Close()
	_, err = w.Write(data)
	return err
}

type installSkills struct {
	ID   string `path:"id"`
	Body struct {
		Skills []string `json:"skill_ids"`
	}
}

type skillsInstalled struct {
	Installed []string       `json:"installed"`
	Already   []string       `json:"already_installed"`
	NotFound  []string       `json:"not_found"`
	Failed    []notInstalled `json:"extraction_errors"`
}

type notInstalled struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Error string `json:"error"`
}

func (a *API) installSkills(ctx context.Context, c *httpapi.Call, in *installSkills) (skillsInstalled, error) {
	ref, err := refOf(in.ID)
	if err != nil {
		return skillsInstalled{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	got, err := a.Skills.InstallSkills(ctx, c.Caller, ref, in.Body.Skills)
	if err != nil {
		return skillsInstalled{}, httpapi.Cause(ctx, err)
	}
	out := skillsInstalled{
		Installed: append([]string{}, got.New...), Already: append([]string{}, got.Already...), NotFound: append([]string{}, got.Missing...), Failed: make([]notInstalled, 0, len(got.Failed)),
	}
	for _, f := range got.Failed {
		out.Failed = append(out.Failed, notInstalled{f.ID, f.Name, f.Reason})
	}
	return out, nil
}

// There are no skills here but those that were uploaded: the list of templates is empty, and so is the catalogue that the
// server itself would have. Other catalogues are the internet's.

type emptyList struct {
	Items []struct{} `json:"items"`
}

func (a *API) listSkillTemplates(context.Context, *httpapi.Call, *httpapi.NoInput) (emptyList, error) {
	return emptyList{Items: []struct{}{}}, nil
}

// ownCatalog is the name of the server's own catalogue.
const ownCatalog = "builtin"

func (a *API) skillCatalog(source string) (emptyList, error) {
	if source != ownCatalog {
		return emptyList{}, noCatalog(source)
	}
	return emptyList{Items: []struct{}{}}, nil
}

type oneOfCatalog struct {
	Source string `path:"source"`
	Name   string `path:"name"`
}

func (a *API) skillOfCatalog(_ context.Context, _ *httpapi.Call, in *oneOfCatalog) (skillShape, error) {
	if in.Source != ownCatalog {
		return skillShape{}, noCatalog(in.Source)
	}
	return skillShape{}, noSuchSkill(in.Name)
}

type importSkill struct {
	Body struct {
		Source string `json:"source"`
		Name   string `json:"skill_name"`
	}
}

func (a *API) importSkill(_ context.Context, _ *httpapi.Call, in *importSkill) (skillShape, error) {
	if in.Body.Source != ownCatalog {
		return skillShape{}, noCatalog(in.Body.Source)
	}
	return skillShape{}, noSuchSkill(in.Body.Name)
}

func noCatalog(source string) error {
	return unsupported("source", `"`+sandbox.Clip(source, 80)+`" is no catalogue here; the server fetches no skills`).WithRemedy("fetch the skill yourself, and send it by skills.upload")
}

func noSuchSkill(name string) error {
	return fault.New(fault.NotFound, "there is no skill %q in the catalogue, which is empty", sandbox.Clip(name, 80)).WithRemedy("send it by skills.upload")
}
