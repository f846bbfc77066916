// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

func (h *house) snapshots(t *testing.T) int {
	t.Helper()
	page, err := h.Engine.Snapshots(t.Context(), alice, snapshot.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Items)
}

func TestATemplateOfASandboxOwnsItsDisk(t *testing.T) {
	t.Parallel()
	h := open(t)
	box := h.make(alice, engine.CreateRequest{})
	h.run(box, "echo kept > kept")
	made, added, err := h.templates().Create(t.Context(), alice, templates.Request{Name: "App:v1", New: true, Sandbox: string(box.ID)})
	if err != nil || !added {
		t.Fatal(added, err)
	}
	want(t, "the sandbox", made.Spec.Of, box.ID)
	want(t, "its disk", made.Snapshot, made.Spec.Disk)
	again := h.make(alice, of("App:v1"))
	want(t, "what is kept", h.run(again, "cat kept"), "kept")

	// A name that is taken costs no disk.
	_, _, err = h.templates().Create(t.Context(), alice, templates.Request{Name: "App:v1", New: true, Sandbox: string(box.ID)})
	wantCode(t, "a name that is taken", err, fault.Exists)
	want(t, "snapshots", h.snapshots(t), 1)
	_, _, err = h.templates().Create(t.Context(), bob, templates.Request{Name: "x", Sandbox: string(box.ID)})
	wantCode(t, "a sandbox of another project", err, fault.NotFound)
	_, _, err = h.templates().Create(t.Context(), carol, templates.Request{Name: "x", Sandbox: string(box.ID)})
	wantCode(t, "of who only reads", err, fault.Denied)

	if err := h.templates().Delete(t.Context(), alice, "App:v1"); err != nil {
		t.Fatal(err)
	}
	want(t, "snapshots after the delete", h.snapshots(t), 0)
	want(t, "of what was made of it", h.run(again, "cat kept"), "kept")
}

func TestNothingIsMadeOfAnInactiveTemplate(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.add(alice, "web", template.Spec{Image: "python", Env: map[string]string{"A": "1"}})
	h.add(alice, "web", template.Spec{Image: "python", ForSkills: []string{"pdf"}})
	if _, err := h.templates().SetDefault(t.Context(), alice, "web", false, true); err != nil {
		t.Fatal(err)
	}
	set := func(ref string, active bool) {
		t.Helper()
		got, err := h.templates().SetActive(t.Context(), alice, ref, active)
		if err != nil || got.Inactive == active {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	set("web", false)
	for _, ref := range []string{"web", "web@1", "web@2", first.ID} {
		_, _, err := h.Creator.Create(t.Context(), alice, of(ref))
		wantCode(t, "a sandbox of "+ref, err, fault.State)
	}
	for _, r := range []engine.CreateRequest{{}, {Template: &sandbox.Template{Skills: []string{"pdf"}}}} {
		want(t, "what is chosen", h.make(alice, r).Template.ChosenBy, sandbox.ChosenByFallback)
	}
	set("web@1", true)
	h.make(alice, of("web@1"))
	_, _, err := h.Creator.Create(t.Context(), alice, of("web@2"))
	wantCode(t, "the other version", err, fault.State)
	set("web", true)
	h.make(alice, of("web"))
	want(t, "what is chosen then", h.make(alice, engine.CreateRequest{}).Template.ChosenBy, sandbox.ChosenByProject)

	_, err = h.templates().SetActive(t.Context(), bob, first.ID, false)
	wantCode(t, "by another project", err, fault.NotFound)
	_, err = h.templates().SetActive(t.Context(), carol, first.ID, false)
	wantCode(t, "by who only reads", err, fault.Denied)
	_, _, err = h.templates().Create(t.Context(), admin, templates.Request{Name: "all", Server: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.templates().SetActive(t.Context(), chief, "all", false)
	wantCode(t, "of all projects, by a project's", err, fault.Denied)
}
