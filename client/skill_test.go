// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

func TestSkills(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	const text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nhow\n"
	k, err := h.UploadSkill(ctx, strings.NewReader(text), int64(len(text)))
	if err != nil || k.Name != "pdf" || k.SkillMDContent == nil || *k.SkillMDContent != text {
		t.Fatalf("UploadSkill: got %+v, %v", k, err)
	}
	if again, err := h.UploadSkill(ctx, strings.NewReader(text), -1); err != nil || again.ID != k.ID {
		t.Errorf("UploadSkill of the same: got %+v, %v", again, err)
	}
	if _, err := h.UploadSkill(ctx, strings.NewReader(text+"more"), -1); fault.Of(err) != fault.Exists {
		t.Errorf("UploadSkill of another: %v", err)
	}
	if next, err := h.ReplaceSkill(ctx, "pdf", strings.NewReader(text+"more"), -1); err != nil || next.ID != k.ID || next.Digest == k.Digest {
		t.Errorf("ReplaceSkill: got %+v, %v", next, err)
	}
	if _, err := h.CreateSkill(ctx, v1.CreateSkill{Name: new("csv"), Description: new("Reads tables."), SkillMDContent: "how"}); err != nil {
		t.Error("CreateSkill:", err)
	}
	if found, err := h.Skills(ctx, "tables"); err != nil || len(found) != 1 || found[0].Name != "csv" {
		t.Errorf("Skills: got %+v, %v", found, err)
	}
	r, err := h.DownloadSkill(ctx, k.ID)
	if err != nil {
		t.Fatal("DownloadSkill:", err)
	}
	data, err := io.ReadAll(r)
	_ = r.Close()
	if z, zerr := zip.NewReader(bytes.NewReader(data), int64(len(data))); err != nil || zerr != nil || z.File[0].Name != "pdf/SKILL.md" {
		t.Errorf("DownloadSkill: %v, %v", err, zerr)
	}
	box, _, err := h.Create(ctx, v1.CreateSandbox{Skills: []string{"csv"}})
	if err != nil || len(box.Skills) != 1 || box.Skills[0].Name != "csv" {
		t.Fatalf("Create: got %+v, %v", box, err)
	}
	got, err := h.InstallSkills(ctx, box.ID, []string{"csv", k.ID, "none"})
	if err != nil || len(got.Installed) != 1 || len(got.AlreadyInstalled) != 1 || len(got.NotFound) != 1 {
		t.Errorf("InstallSkills: got %+v, %v", got, err)
	}
	if err := h.DeleteSkill(ctx, "pdf"); err != nil {
		t.Error("DeleteSkill:", err)
	}
	if _, err := h.Skill(ctx, k.ID); fault.Of(err) != fault.NotFound {
		t.Errorf("Skill after its end: %v", err)
	}
}
