// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"strconv"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/skill"
)

// skillCost is what a byte of a package costs while it is read: as it came, unpacked, and packed.
const skillCost = 4

func (a *API) uploadSkill(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.Skill, error) {
	data, err := a.skillBody(ctx, c)
	if err != nil {
		return v1.Skill{}, err
	}
	return a.addSkill(ctx, c, data, skill.Imported)
}

type createSkill struct{ Body v1.CreateSkill }

func (a *API) createSkill(ctx context.Context, c *idempotency.Call, in *createSkill) (v1.Skill, error) {
	b := &in.Body
	text, err := skill.OfText(b.SkillMDContent, b.Name, b.Description)
	if err != nil {
		return v1.Skill{}, err
	}
	return a.addSkill(ctx, c, []byte(text), skill.Manual)
}

func (a *API) addSkill(ctx context.Context, c *idempotency.Call, data []byte, from skill.Source) (v1.Skill, error) {
	k, added, err := a.Skills.AddSkill(ctx, c.Caller, data, from)
	if err != nil {
		return v1.Skill{}, err
	}
	if !added {
		c.Status = http.StatusOK
	}
	c.W.Header().Set("Location", "/v1/skills/"+k.ID)
	return oneSkill(k), nil
}

// skillBody reads a package: the raw body, or the part "file" of a form.
func (a *API) skillBody(ctx context.Context, c *idempotency.Call) ([]byte, error) {
	return c.Upload(ctx, "file", skill.MaxBytes, skillCost)
}

type listSkills struct {
	Search *string `query:"search" doc:"only those with this in name, description or tags"`
}

func (a *API) listSkills(ctx context.Context, c *idempotency.Call, in *listSkills) (v1.SkillList, error) {
	got, err := a.Skills.ListSkills(ctx, c.Caller, httpapi.Given(in.Search))
	if err != nil {
		return v1.SkillList{}, err
	}
	out := v1.SkillList{Items: make([]v1.Skill, 0, len(got)), Total: len(got)}
	for _, k := range got {
		out.Items = append(out.Items, skillOf(k))
	}
	return out, nil
}

type bySkill struct {
	Skill string `path:"skill" doc:"the skill's id or name"`
}

func (a *API) getSkill(ctx context.Context, c *idempotency.Call, in *bySkill) (v1.Skill, error) {
	k, err := a.Skills.Skill(ctx, c.Caller, in.Skill)
	if err != nil {
		return v1.Skill{}, err
	}
	return oneSkill(k), nil
}

func (a *API) replaceSkill(ctx context.Context, c *idempotency.Call, in *bySkill) (v1.Skill, error) {
	data, err := a.skillBody(ctx, c)
	if err != nil {
		return v1.Skill{}, err
	}
	k, err := a.Skills.ReplaceSkill(ctx, c.Caller, in.Skill, data, skill.Imported)
	if err != nil {
		return v1.Skill{}, err
	}
	return oneSkill(k), nil
}

func (a *API) deleteSkill(ctx context.Context, c *idempotency.Call, in *bySkill) (httpapi.None, error) {
	return httpapi.None{}, a.Skills.DeleteSkill(ctx, c.Caller, in.Skill)
}

// skillPackage sends a skill as a ZIP archive.
func (a *API) skillPackage(ctx context.Context, c *idempotency.Call, in *bySkill) error {
	k, err := a.Skills.Skill(ctx, c.Caller, in.Skill)
	if err == nil {
		err = c.Reserve(ctx, k.Size)
	}
	var pkg []byte
	if err == nil {
		k, pkg, err = a.Skills.SkillPackage(ctx, c.Caller, k.ID)
	}
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", v1.SkillType)
	h.Set("Content-Disposition", `attachment; filename="`+k.Name+`.skill"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(pkg)))
	if c.R.Method == http.MethodHead {
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	w := c.StallWriter()
	defer w.Close()
	_, err = w.Write(pkg)
	return err
}

type installSkills struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.InstallSkills
}

func (a *API) installSkills(ctx context.Context, c *idempotency.Call, in *installSkills) (v1.SkillsInstalled, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	got, err := a.Skills.InstallSkills(ctx, c.Caller, in.Ref, in.Body.SkillIDs)
	if err != nil {
		return v1.SkillsInstalled{}, httpapi.Cause(ctx, err)
	}
	out := v1.SkillsInstalled{
		Installed: append([]string{}, got.New...), AlreadyInstalled: append([]string{}, got.Already...), NotFound: append([]string{}, got.Missing...),
		ExtractionErrors: make([]v1.SkillNotInstalled, 0, len(got.Failed)),
	}
	for _, f := range got.Failed {
		out.ExtractionErrors = append(out.ExtractionErrors, v1.SkillNotInstalled{ID: f.ID, Name: f.Name, Error: f.Reason})
	}
	return out, nil
}

// oneSkill is skillOf with the text.
func oneSkill(k *skill.Skill) v1.Skill {
	out := skillOf(k)
	out.SkillMDContent = &k.Text
	return out
}

func skillOf(k *skill.Skill) v1.Skill {
	out := v1.Skill{
		ID: k.ID, Name: k.Name, Description: k.Description, Author: k.Author, Version: k.Version, License: k.License, Compatibility: k.Compatibility,
		Tags: append([]string{}, k.Tags...), AllowedTools: append([]string{}, k.AllowedTools...), SourceType: string(k.Source), Digest: k.Digest,
		PackageSizeBytes: k.Size, Files: make([]v1.SkillFile, 0, len(k.Files)), Project: k.Project,
		CreatedAt: k.CreatedAt.UTC(), UpdatedAt: k.UpdatedAt.UTC(), CreatedBy: k.CreatedBy,
	}
	for _, f := range k.Files {
		out.Files = append(out.Files, v1.SkillFile{Path: f.Path, SizeBytes: f.Size})
	}
	return out
}
