// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

const skillText = "---\nname: pdf\ndescription: Reads PDF files.\n---\n\n# How\n"

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSkills(t *testing.T) {
	t.Parallel()
	h := open(t)
	pdf := want[v1.Skill](h, 201, "POST", "/api/v1/skills/upload", zipped(t, map[string]string{"pdf/SKILL.md": skillText, "pdf/scripts/a.sh": "#!/bin/sh\n"}))
	if !sandbox.ValidRunID(pdf.ID) || pdf.Name != "pdf" || pdf.Description != "Reads PDF files." || len(pdf.Files) != 2 || pdf.SkillMDContent == nil || *pdf.SkillMDContent != skillText || pdf.SourceType != "imported" {
		t.Errorf("got %+v", pdf)
	}
	if again := want[v1.Skill](h, 200, "POST", "/v1/skills/upload", zipped(t, map[string]string{"SKILL.md": skillText, "scripts/a.sh": "#!/bin/sh\n"})); again.ID != pdf.ID {
		t.Errorf("the same one again is %+v", again)
	}
	want[v1.Problem](h, 409, "POST", "/v1/skills/upload", []byte(skillText))
	if got := want[v1.Skill](h, 200, "GET", "/v1/skills/"+pdf.ID, nil); got.SkillMDContent == nil || *got.SkillMDContent != skillText {
		t.Errorf("got %+v", got)
	}
	made := want[v1.Skill](h, 201, "POST", "/v1/skills", object{"name": "csv", "description": "Reads: tables", "skill_md_content": "# How\n"})
	if made.SourceType != "manual" || made.Description != "Reads: tables" {
		t.Errorf("got %+v", made)
	}
	list := want[v1.SkillList](h, 200, "GET", "/v1/skills", nil)
	if list.Total != 2 || len(list.Items) != 2 || list.Items[0].Name != "csv" || list.Items[1].SkillMDContent != nil {
		t.Errorf("got %+v", list)
	}
	if list := want[v1.SkillList](h, 200, "GET", "/v1/skills?search=TABLES", nil); list.Total != 1 {
		t.Errorf("got %+v", list)
	}
	pkg := h.do("GET", "/v1/skills/pdf/package", nil)
	if r, err := zip.NewReader(bytes.NewReader([]byte(pkg.body)), int64(len(pkg.body))); err != nil || r.File[0].Name != "pdf/SKILL.md" || pkg.Header.Get("Content-Type") != "application/zip" {
		t.Errorf("got %v, %v", pkg.Header, err)
	}

	box := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"skills": []string{"csv"}})
	if len(box.Skills) != 1 || box.Skills[0].ID != made.ID || box.Skills[0].InstalledAt.IsZero() {
		t.Errorf("got %+v", box.Skills)
	}
	got := want[v1.SkillsInstalled](h, 200, "POST", "/api/v1/sandboxes/"+box.ID+"/skills", object{"skill_ids": []string{pdf.ID, made.ID, "0b9f4f9e-0000-4000-8000-000000000001"}})
	if len(got.Installed) != 1 || got.Installed[0] != "pdf" || len(got.AlreadyInstalled) != 1 || len(got.NotFound) != 1 || got.ExtractionErrors == nil {
		t.Errorf("got %+v", got)
	}
	if a := h.do("POST", "/api/v1/sandboxes/"+box.ID+"/skills", object{"skill_ids": []string{pdf.ID}}); strings.TrimSpace(string(a.body)) != `{"installed":[],"already_installed":["pdf"],"not_found":[],"extraction_errors":[]}` {
		t.Errorf("got %s", a.body)
	}
	if out := h.do("GET", "/v1/sandboxes/"+box.ID+"/files/skills/pdf/SKILL.md", nil); string(out.body) != skillText {
		t.Errorf("got %d %s", out.StatusCode, out.body)
	}
	total := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil).Total
	for _, body := range []string{`{"skills":["none"]}`, `{"skills":[]}`, `{"skills":["csv","none"]}`, `{"skills":"csv"}`} {
		want[v1.Problem](h, 422, "POST", "/v1/sandboxes", body)
	}
	want[v1.Problem](h, 422, "POST", "/v1/exec", object{"command": "true", "sandbox": object{"skills": []string{"csv"}}})
	if now := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil).Total; now != total {
		t.Errorf("there are %d sandboxes, want %d", now, total)
	}

	other := h.as("other", access.SandboxesRead, access.SandboxesWrite)
	for _, path := range []string{"/v1/skills/" + pdf.ID, "/v1/skills/pdf", "/v1/skills/pdf/package", "/v1/skills/" + pdf.ID + "/package"} {
		want[v1.Problem](other, 404, "GET", path, nil)
	}
	want[v1.Problem](other, 404, "DELETE", "/v1/skills/"+pdf.ID, nil)
	want[v1.Problem](other, 404, "PUT", "/v1/skills/"+pdf.ID, []byte(skillText))
	want[v1.Problem](other, 404, "POST", "/v1/sandboxes/"+box.ID+"/skills", object{"skill_ids": []string{pdf.ID}})
	reader := h.as("default", access.SandboxesRead)
	want[v1.Skill](reader, 200, "GET", "/v1/skills/pdf", nil)
	want[v1.Problem](reader, 403, "POST", "/v1/skills/upload", []byte(skillText))
	want[v1.Problem](reader, 403, "POST", "/v1/skills", object{"skill_md_content": skillText})
	want[v1.Problem](reader, 403, "PUT", "/v1/skills/pdf", []byte(skillText))
	want[v1.Problem](reader, 403, "DELETE", "/v1/skills/pdf", nil)
	want[v1.Problem](reader, 403, "POST", "/v1/sandboxes/"+box.ID+"/skills", object{"skill_ids": []string{"pdf"}})

	for body, field := range map[string]string{
		`{}`: "skill_md_content", `{"skill_md_content":"text"}`: "skill_md_content", `{"skill_md_content":"text","name":"x"}`: "skill_md_content",
		`{"skill_md_content":"text","name":"X","description":"x"}`: "name", `{"skill_md_content":"---\nname: x\n---\n"}`: "skill",
		`{"skill_md_content":"---\nname: x\ndescription: y\n---\n","name":"z"}`: "name",
	} {
		p := want[v1.Problem](h, 422, "POST", "/v1/skills", body)
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v, want the field %s", body, p, field)
		}
	}
	want[v1.Problem](h, 422, "POST", "/v1/skills/upload", zipped(t, map[string]string{"SKILL.md": skillText, "../x": "x"}))
	want[v1.Problem](h, 413, "POST", "/v1/skills/upload", bytes.Repeat([]byte("x"), 10<<20+1))

	next := want[v1.Skill](h, 200, "PUT", "/v1/skills/pdf", []byte(skillText+"more"))
	if next.ID != pdf.ID || next.Digest == pdf.Digest {
		t.Errorf("got %+v", next)
	}
	want[v1.Problem](h, 422, "PUT", "/v1/skills/csv", []byte(skillText))
	want[any](h, 204, "DELETE", "/v1/skills/pdf", nil)
	want[v1.Problem](h, 404, "GET", "/v1/skills/pdf", nil)
	if box := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/"+box.ID, nil); len(box.Skills) != 2 {
		t.Errorf("got %+v", box.Skills)
	}
}

func TestASkillMayComeInAForm(t *testing.T) {
	t.Parallel()
	h := open(t)
	form := "--b\r\nContent-Disposition: form-data; name=\"prefix\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"SKILL.md\"\r\n\r\n" + skillText + "\r\n--b--\r\n"
	const header, kind = "Content-Type", "multipart/form-data; boundary=b"
	if a := h.do("POST", "/v1/skills/upload", []byte(form), header, kind); a.StatusCode != 201 || !strings.Contains(string(a.body), `"name":"pdf"`) {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
	for _, bad := range []string{"", "--b--\r\n", strings.Replace(form, `"file"`, `"other"`, 1), form[:len(form)-60]} {
		if a := h.do("POST", "/v1/skills/upload", []byte(bad), header, kind); a.StatusCode < 400 || a.StatusCode >= 500 {
			t.Errorf("%q: got %d %s", bad, a.StatusCode, a.body)
		}
	}
}
