// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skills_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/skills"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/skill"
	"sandpit.dev/store"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		os.Exit(beKilled(dir, os.Getenv(killPoint)))
	}
	goleak.VerifyTestMain(m)
}

var (
	alice = access.Caller{Project: "default", Actor: "alice", Via: "test", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	bob   = access.Caller{Project: "other", Actor: "bob", Via: "test", Scopes: alice.Scopes}
	carol = access.Caller{Project: "default", Actor: "carol", Via: "test", Scopes: []access.Scope{access.SandboxesRead}}
)

type house struct {
	*enginetest.Server
	t      *testing.T
	skills *skills.Service
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{Server: enginetest.Start(t, t.TempDir()), t: t}
	h.skills = skills.New(h.Engine, skills.Options{})
	return h
}

// pack returns a package with the text of a SKILL.md and more files, as name, text, name, text.
func pack(t *testing.T, name, text string, more ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	more = append([]string{"SKILL.md", "---\nname: " + name + "\ndescription: a skill of " + name + "\n---\n" + text}, more...)
	for i := 0; i < len(more); i += 2 {
		f, err := w.Create(more[i])
		if err == nil {
			_, err = io.WriteString(f, more[i+1])
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

func (h *house) add(name, text string, more ...string) *skill.Skill {
	h.t.Helper()
	k, _, err := h.skills.AddSkill(h.t.Context(), alice, pack(h.t, name, text, more...), skill.Imported)
	if err != nil {
		h.t.Fatal(err)
	}
	return k
}

func (h *house) box() *sandbox.Sandbox {
	h.t.Helper()
	s, _, err := h.Engine.Create(h.t.Context(), alice, engine.CreateRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *house) install(box *sandbox.Sandbox, refs ...string) *skills.Installed {
	h.t.Helper()
	got, err := h.skills.InstallSkills(h.t.Context(), alice, string(box.ID), refs)
	if err != nil {
		h.t.Fatal(err)
	}
	return got
}

// run runs a command inside and returns what it prints.
func (h *house) run(box *sandbox.Sandbox, command string) string {
	h.t.Helper()
	var out bytes.Buffer
	res, err := h.Engine.Exec(h.t.Context(), alice, string(box.ID), engine.ExecRequest{Shell: command}, func(f sandbox.Frame) error {
		out.Write(f.Data)
		return nil
	})
	if err != nil || res.ExitCode != 0 {
		h.t.Fatalf("%s: %v, exit code %d\n%s", command, err, res.ExitCode, out.String())
	}
	return strings.TrimSpace(out.String())
}

// recorded returns the names of the skills in a sandbox's record.
func (h *house) recorded(box *sandbox.Sandbox) (names []string) {
	h.t.Helper()
	s, err := h.Engine.Get(h.t.Context(), alice, string(box.ID))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, k := range s.Skills {
		names = append(names, k.Name)
	}
	return names
}

func (h *house) installedEvents(box *sandbox.Sandbox) (n int) {
	h.t.Helper()
	err := h.Store.View(h.t.Context(), func(tx store.Tx) error {
		page, _, err := tx.Events().List(store.EventQuery{Sandbox: box.ID, Types: []sandbox.EventType{sandbox.EventSkillInstalled}})
		n = len(page)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if fault.Of(err) != code {
		t.Errorf("%s: got %q (%v), want %q", what, fault.Of(err), err, code)
	}
}

func TestASkillIsKeptByItsProject(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	k := h.add("pdf", "first", "scripts/a.sh", "#!/bin/sh\n")
	if !sandbox.ValidRunID(k.ID) {
		t.Errorf("the id %q is no UUID", k.ID)
	}
	again, added, err := h.skills.AddSkill(ctx, alice, pack(t, "pdf", "first", "scripts/a.sh", "#!/bin/sh\n"), skill.Imported)
	if err != nil || added || again.ID != k.ID {
		t.Errorf("the same one again: got %v, %v, %v", again, added, err)
	}
	_, _, err = h.skills.AddSkill(ctx, alice, pack(t, "pdf", "second"), skill.Imported)
	wantCode(t, "another one of its name", err, fault.Exists)
	for _, ref := range []string{k.ID, "pdf"} {
		_, err = h.skills.Skill(ctx, bob, ref)
		wantCode(t, "Skill by another project", err, fault.NotFound)
		_, _, err = h.skills.SkillPackage(ctx, bob, ref)
		wantCode(t, "SkillPackage by another project", err, fault.NotFound)
		_, err = h.skills.ReplaceSkill(ctx, bob, ref, pack(t, "pdf", "mine"), skill.Imported)
		wantCode(t, "ReplaceSkill by another project", err, fault.NotFound)
		wantCode(t, "DeleteSkill by another project", h.skills.DeleteSkill(ctx, bob, ref), fault.NotFound)
		wantCode(t, "CheckSkills by another project", h.skills.CheckSkills(ctx, bob, []string{ref}), fault.Invalid)
	}
	if all, err := h.skills.ListSkills(ctx, bob, ""); err != nil || len(all) != 0 {
		t.Errorf("another project sees %v, %v", all, err)
	}
	_, _, err = h.skills.AddSkill(ctx, carol, pack(t, "x", ""), skill.Imported)
	wantCode(t, "AddSkill without the scope", err, fault.Denied)
	_, err = h.skills.ReplaceSkill(ctx, carol, "pdf", pack(t, "pdf", ""), skill.Imported)
	wantCode(t, "ReplaceSkill without the scope", err, fault.Denied)
	wantCode(t, "DeleteSkill without the scope", h.skills.DeleteSkill(ctx, carol, "pdf"), fault.Denied)
	_, err = h.skills.InstallSkills(ctx, carol, "x", []string{"pdf"})
	wantCode(t, "InstallSkills without the scope", err, fault.Denied)
	_, err = h.skills.Skill(ctx, access.Caller{Project: "default"}, "pdf")
	wantCode(t, "Skill without a scope", err, fault.Denied)

	_, err = h.skills.ReplaceSkill(ctx, alice, "pdf", pack(t, "other", "x"), skill.Imported)
	wantCode(t, "ReplaceSkill under another name", err, fault.Invalid)
	next, err := h.skills.ReplaceSkill(ctx, alice, k.ID, pack(t, "pdf", "second"), skill.Imported)
	if err != nil || next.ID != k.ID || next.Digest == k.Digest {
		t.Fatalf("ReplaceSkill: got %v, %v", next, err)
	}
	got, pkg, err := h.skills.SkillPackage(ctx, carol, "pdf")
	if err != nil || !strings.HasSuffix(got.Text, "second") {
		t.Fatalf("SkillPackage: got %v, %v", got, err)
	}
	if p, err := skill.Read(pkg); err != nil || p.Digest() != next.Digest {
		t.Errorf("the package is not the skill's: %v", err)
	}
	if found, err := h.skills.ListSkills(ctx, alice, "SKILL OF P"); err != nil || len(found) != 1 {
		t.Errorf("the search found %v, %v", found, err)
	}
	if found, err := h.skills.ListSkills(ctx, alice, "none such"); err != nil || len(found) != 0 {
		t.Errorf("the search found %v, %v", found, err)
	}
	if err := h.skills.DeleteSkill(ctx, alice, "pdf"); err != nil {
		t.Fatal(err)
	}
	_, err = h.skills.Skill(ctx, alice, k.ID)
	wantCode(t, "Skill after its end", err, fault.NotFound)
}

func TestAProjectKeepsOnlySoManySkills(t *testing.T) {
	t.Parallel()
	h := open(t)
	err := h.Store.Update(t.Context(), func(tx store.Tx) error {
		for i := range skills.MaxSkills {
			name := fmt.Sprintf("s%d", i)
			if err := tx.Skills().Insert(&skill.Skill{ID: name, Project: "default", Meta: skill.Meta{Name: name}}, []byte("x")); err != nil {
				return err
			}
		}
		return tx.Skills().Insert(&skill.Skill{ID: "big", Project: "other", Meta: skill.Meta{Name: "big"}, Size: skills.MaxBytes}, []byte("x"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []access.Caller{alice, bob} {
		_, _, err := h.skills.AddSkill(t.Context(), c, pack(t, "one-more", ""), skill.Imported)
		wantCode(t, "one too many of "+c.Project, err, fault.Exhausted)
	}
	if _, err := h.skills.ReplaceSkill(t.Context(), alice, "s7", pack(t, "s7", "x"), skill.Imported); err != nil {
		t.Error("one in the place of another:", err)
	}
	if _, err := h.skills.ReplaceSkill(t.Context(), bob, "big", pack(t, "big", "x"), skill.Imported); err != nil {
		t.Error("a small one in the place of a large one:", err)
	}
}

func TestInstallIsDoneOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	k := h.add("pdf", "text", "scripts/a.sh", "#!/bin/sh\necho ran\n", "assets/x y.txt", "x")
	h.add("csv", "text")
	box := h.box()
	want(t, "the first", h.install(box, k.ID, "csv", "no-such", k.ID), &skills.Installed{New: []string{"pdf", "csv"}, Missing: []string{"no-such"}})
	want(t, "a script of it", h.run(box, "skills/pdf/scripts/a.sh && cat 'skills/pdf/assets/x y.txt' && ls -A skills"), "ran\nxcsv\npdf")
	want(t, "the second", h.install(box, "csv", "pdf"), &skills.Installed{Already: []string{"csv", "pdf"}})
	want(t, "the record", h.recorded(box), []string{"pdf", "csv"})
	want(t, "the events", h.installedEvents(box), 2)

	h.run(box, "echo mine >skills/csv/notes && rm -r skills/pdf/SKILL.md")
	want(t, "after a file of it was deleted", h.install(box, "csv", "pdf"), &skills.Installed{New: []string{"pdf"}, Already: []string{"csv"}})
	h.run(box, "rm -r skills")
	want(t, "after all were deleted", h.install(box, "csv", "pdf"), &skills.Installed{New: []string{"csv", "pdf"}})

	if _, err := h.skills.ReplaceSkill(t.Context(), alice, "pdf", pack(t, "pdf", "second", "new", "x"), skill.Imported); err != nil {
		t.Fatal(err)
	}
	want(t, "after it was replaced", h.install(box, "pdf"), &skills.Installed{New: []string{"pdf"}})
	want(t, "what is there then", h.run(box, "ls skills/pdf; tail -n 1 skills/pdf/SKILL.md"), "SKILL.md\nnew\nsecond")
	want(t, "the record", h.recorded(box), []string{"csv", "pdf"})

	if err := h.skills.DeleteSkill(t.Context(), alice, "csv"); err != nil {
		t.Fatal(err)
	}
	want(t, "the record, after it is deleted from the project", h.recorded(box), []string{"csv", "pdf"})
	want(t, "what is there, after that", h.run(box, "ls skills/csv"), "SKILL.md")
}

func TestInstallsAtOnceAllEndWell(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.add("pdf", "text", "a", strings.Repeat("x", 1<<20))
	box := h.box()
	var wg sync.WaitGroup
	results := make([]*skills.Installed, 8)
	for i := range results {
		wg.Go(func() {
			var err error
			if results[i], err = h.skills.InstallSkills(t.Context(), alice, string(box.ID), []string{"pdf"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	made := 0
	for _, r := range results {
		if r == nil || len(r.New)+len(r.Already) != 1 {
			t.Errorf("got %+v", r)
			continue
		}
		made += len(r.New)
	}
	if made != 1 {
		t.Errorf("it was installed %d times", made)
	}
	want(t, "what is there", h.run(box, "ls -A skills"), "pdf")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.skills.InstallSkills(ctx, alice, string(box.ID), []string{"pdf"}); err == nil {
		t.Error("a call whose caller went away was done")
	}
}

func TestAHostileSandboxMisleadsNoInstall(t *testing.T) {
	t.Parallel()
	all := open(t)
	all.add("pdf", "text")
	for name, tc := range map[string]struct{ before, want string }{
		"SkillsIsALink":       {"mkdir other; ln -s other skills", "/workspace/skills is there, and is no directory (symlink)"},
		"SkillsLeadsOut":      {"ln -s / skills", "/workspace/skills is there, and is no directory (symlink)"},
		"SkillsIsAFile":       {"echo x >skills", "/workspace/skills is there, and is no directory (file)"},
		"SkillsIsAPipe":       {"mkfifo skills", "/workspace/skills is there, and is no directory (other)"},
		"ItIsALink":           {"mkdir other skills; ln -s ../other skills/pdf", "/workspace/skills/pdf is there, and is no directory (symlink)"},
		"ItIsAFile":           {"mkdir skills; echo x >skills/pdf", "/workspace/skills/pdf is there, and is no directory (file)"},
		"ItIsSomebodys":       {"mkdir -p skills/pdf; echo x >skills/pdf/notes", "/workspace/skills/pdf is there, and was not installed"},
		"TheMarkIsALink":      {"mkdir -p skills/pdf; ln -s /etc/passwd skills/pdf/.sandpit-skill.json", "was not installed"},
		"TheMarkIsAPipe":      {"mkdir -p skills/pdf; mkfifo skills/pdf/.sandpit-skill.json", "was not installed"},
		"TheMarkIsADirectory": {"mkdir -p skills/pdf/.sandpit-skill.json", "was not installed"},
		"TheMarkIsLarge":      {"mkdir -p skills/pdf; truncate -s 1G skills/pdf/.sandpit-skill.json", "was not installed"},
		"TheMarkIsNonsense":   {"mkdir -p skills/pdf; echo '{' >skills/pdf/.sandpit-skill.json", "was not installed"},
		"TheMarkIsOfAnother":  {`mkdir -p skills/pdf; echo '{"name":"x"}' >skills/pdf/.sandpit-skill.json`, "was not installed"},
		"ItMayNotBeWritten":   {"mkdir skills; chmod 555 skills", ""}, // the tests' user may be root
	} {
		t.Run(name, func(t *testing.T) {
			h := &house{all.Server, t, all.skills}
			box := h.box()
			h.run(box, tc.before)
			before := h.run(box, "find . | sort")
			got := h.install(box, "pdf")
			if tc.want == "" {
				h.run(box, "chmod 755 skills")
				return
			}
			if len(got.Failed) != 1 || len(got.New)+len(got.Already) != 0 || !strings.Contains(got.Failed[0].Reason, tc.want) {
				t.Errorf("got %+v, want a failure with %q", got, tc.want)
			}
			want(t, "the files, which are as they were", h.run(box, "find . | sort"), before)
			want(t, "the record", len(h.recorded(box)), 0)
		})
	}
	t.Run("WhatABrokenCallLeftIsALink", func(t *testing.T) {
		h := &house{all.Server, t, all.skills}
		box := h.box()
		h.run(box, "mkdir -p skills precious; echo x >precious/file; ln -s ../precious skills/.pdf.new")
		want(t, "the install", h.install(box, "pdf"), &skills.Installed{New: []string{"pdf"}})
		want(t, "what the link led to", h.run(box, "ls precious"), "file")
	})
}

func TestWhatADyingServerLeftIsFoundAgain(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"skill.unpacked", "skill.there"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.add("pdf", "text")
			box := h.box()
			dying := skills.New(h.Engine, skills.Options{Checkpoint: func(at string) {
				if at == point {
					runtime.Goexit()
				}
			}})
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = dying.InstallSkills(t.Context(), alice, string(box.ID), []string{"pdf"}) })
			wg.Wait()
			h.Restart()
			h.skills = skills.New(h.Engine, skills.Options{})
			want(t, "the record before", len(h.recorded(box)), 0)
			got := h.install(box, "pdf")
			if len(got.New)+len(got.Already) != 1 || (point == "skill.there") != (len(got.Already) == 1) {
				t.Errorf("got %+v", got)
			}
			want(t, "what is there", h.run(box, "ls -A skills; ls skills/pdf"), "pdf\nSKILL.md")
			want(t, "the record after", h.recorded(box), []string{"pdf"})
			want(t, "the events", h.installedEvents(box), 1)
		})
	}
}

func TestSkillsGoWithTheirDisk(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	h.add("pdf", "text")
	box := h.box()
	if _, err := h.Engine.CreateSnapshot(ctx, alice, string(box.ID), engine.SnapshotRequest{Name: "before"}); err != nil {
		t.Skip("the memory runtime keeps no snapshots:", err)
	}
	h.install(box, "pdf")
	if _, err := h.Engine.CreateSnapshot(ctx, alice, string(box.ID), engine.SnapshotRequest{Name: "after"}); err != nil {
		t.Fatal(err)
	}
	made, err := h.Engine.Fork(ctx, alice, string(box.ID), engine.ForkRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the record of a fork", h.recorded(made[0]), []string{"pdf"})
	want(t, "its files", h.run(made[0], "ls skills"), "pdf")
	want(t, "an install there", h.install(made[0], "pdf"), &skills.Installed{Already: []string{"pdf"}})

	if _, err := h.Engine.Reset(ctx, alice, string(box.ID)); err != nil {
		t.Fatal(err)
	}
	want(t, "the record after a reset", len(h.recorded(box)), 0)
	want(t, "the files after a reset", h.run(box, "ls -A"), "")
	if _, err := h.Engine.Rollback(ctx, alice, string(box.ID), "after"); err != nil {
		t.Fatal(err)
	}
	want(t, "the record after a rollback", len(h.recorded(box)), 0)
	want(t, "an install there", h.install(box, "pdf"), &skills.Installed{Already: []string{"pdf"}})
	want(t, "the record after that", h.recorded(box), []string{"pdf"})
	h.Restart()
	want(t, "the record after a restart", h.recorded(box), []string{"pdf"})
}

func TestEquipIsAllOrNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	h.add("pdf", "text")
	box := h.box()
	got, err := h.skills.EquipSandbox(ctx, alice, box, true, []string{"pdf"})
	if err != nil || len(got.Skills) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = h.skills.EquipSandbox(ctx, alice, box, false, []string{"pdf", "none"})
	wantCode(t, "of a sandbox that was there", err, fault.Invalid)
	want(t, "its record", h.recorded(box), []string{"pdf"})
	next := h.box()
	_, err = h.skills.EquipSandbox(ctx, alice, next, true, []string{"none"})
	wantCode(t, "of a new one", err, fault.Invalid)
	_, err = h.Engine.Get(ctx, alice, string(next.ID))
	wantCode(t, "the new one", err, fault.NotFound)
	many := make([]string, skills.MaxInstalls+1)
	_, err = h.skills.InstallSkills(ctx, alice, string(box.ID), many)
	wantCode(t, "too many", err, fault.Invalid)
	_, err = h.skills.InstallSkills(ctx, alice, string(box.ID), nil)
	wantCode(t, "none", err, fault.Invalid)
	if _, err := h.Engine.Stop(ctx, alice, string(box.ID)); err != nil {
		t.Fatal(err)
	}
	_, err = h.skills.InstallSkills(ctx, alice, string(box.ID), []string{"pdf"})
	wantCode(t, "in a stopped sandbox", err, fault.State)
	_, err = h.skills.InstallSkills(ctx, alice, "no-such", []string{"pdf"})
	wantCode(t, "in none", err, fault.NotFound)
	_, err = h.skills.InstallSkills(ctx, bob, string(box.ID), []string{"pdf"})
	wantCode(t, "in another project's", err, fault.NotFound)
}
