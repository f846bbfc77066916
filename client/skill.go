// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"net/url"

	v1 "sandpit.dev/api/v1"
)

// A skill is named by its name, or by its id.

// UploadSkill keeps a skill that comes as a ZIP archive or as the text of a SKILL.md, of size bytes or, if
// that is below 0, of an unknown number. The same skill again is that which is there.
func (c *Client) UploadSkill(ctx context.Context, r io.Reader, size int64) (*v1.Skill, error) {
	return c.skill(ctx, request{method: "POST", path: "/skills/upload", raw: r, size: size})
}

// CreateSkill makes a skill of the text of its SKILL.md.
func (c *Client) CreateSkill(ctx context.Context, r v1.CreateSkill) (*v1.Skill, error) {
	return c.skill(ctx, request{method: "POST", path: "/skills", body: r})
}

// Skills returns the skills of the project by name: those that have search in name, description or tags.
func (c *Client) Skills(ctx context.Context, search string) ([]v1.Skill, error) {
	q := make(url.Values)
	set(q, "search", search)
	var out v1.SkillList
	if _, err := c.call(ctx, request{method: "GET", path: "/skills", query: q}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// Skill returns a skill with its text.
func (c *Client) Skill(ctx context.Context, skill string) (*v1.Skill, error) {
	return c.skill(ctx, request{method: "GET", path: "/skills/" + seg(skill)})
}

// ReplaceSkill puts another package in a skill's place; see UploadSkill.
func (c *Client) ReplaceSkill(ctx context.Context, skill string, r io.Reader, size int64) (*v1.Skill, error) {
	return c.skill(ctx, request{method: "PUT", path: "/skills/" + seg(skill), raw: r, size: size})
}

// DownloadSkill opens the package of a skill, a ZIP archive. It is complete when Read returned io.EOF; any
// other error means that it was cut short. The caller closes it.
func (c *Client) DownloadSkill(ctx context.Context, skill string) (io.ReadCloser, error) {
	resp, err := c.do(ctx, request{method: "GET", path: "/skills/" + seg(skill) + "/package"})
	if err != nil {
		return nil, err
	}
	return &archive{resp.Body, "package", "download it"}, nil
}

// DeleteSkill deletes a skill from the project. Where it is installed it stays.
func (c *Client) DeleteSkill(ctx context.Context, skill string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: "/skills/" + seg(skill)}, nil)
	return err
}

// InstallSkills installs skills into a sandbox. What the project does not have, or cannot be installed, is
// said in the answer, and is no error.
func (c *Client) InstallSkills(ctx context.Context, ref string, skills []string) (*v1.SkillsInstalled, error) {
	out := new(v1.SkillsInstalled)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/skills"), body: v1.InstallSkills{SkillIDs: skills}}, out); err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Client) skill(ctx context.Context, r request) (*v1.Skill, error) {
	k := new(v1.Skill)
	if _, err := c.call(ctx, r, k); err != nil {
		return nil, err
	}
	return k, nil
}
