// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package languages_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/languages"
	"sandpit.dev/fault"
	"sandpit.dev/lsp"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

var alice = access.Caller{Project: "default", Actor: "alice", Via: "test", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}

type house struct {
	*enginetest.Server
	t *testing.T
}

// open starts an engine with a sandbox "box", whose language server of Python is this program, as how has it.
func open(t *testing.T, how string, o languages.Options) *house {
	t.Helper()
	h := &house{enginetest.StartLanguages(t, t.TempDir(), o), t}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s='%s' exec '%s'\n", asServer, how, self)
	if err := os.WriteFile(filepath.Join(bin, "pyright-langserver"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err = h.Engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box", Env: map[string]string{"PATH": bin + ":/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	h.write("project/a.py", "a")
	return h
}

func (h *house) write(path, text string) {
	h.t.Helper()
	if _, _, err := h.Files.WriteFile(h.t.Context(), alice, "box", path, strings.NewReader(text), sandbox.WriteFileOptions{MakeParents: true}); err != nil {
		h.t.Fatal(err)
	}
}

var python = languages.At{Language: "python", Project: "project"}

func (h *house) start(at languages.At) {
	h.t.Helper()
	if err := h.Languages.Start(h.t.Context(), alice, "box", at); err != nil {
		h.t.Fatal(err)
	}
}

// asks returns the name of the one symbol that a query finds.
func (h *house) asks(at languages.At, query string) string {
	h.t.Helper()
	all, err := h.Languages.Symbols(h.t.Context(), alice, "box", at, query)
	if err != nil || len(all) != 1 {
		h.t.Fatalf("%s: %v, %v", query, all, err)
	}
	return all[0].Name
}

// notStarted fails where a question is answered, or fails for another reason than that nothing runs.
func (h *house) notStarted(at languages.At) {
	h.t.Helper()
	if _, err := h.Languages.Symbols(h.t.Context(), alice, "box", at, "the process"); fault.ReasonOf(err) != languages.ReasonNotStarted || !fault.Is(err, fault.State) {
		h.t.Errorf("%v; want that none runs", err)
	}
}

// rows are the events of language servers.
func (h *house) rows() (all []*sandbox.Event) {
	h.t.Helper()
	s, err := h.Engine.Get(h.t.Context(), alice, "box")
	if err != nil {
		h.t.Fatal(err)
	}
	err = h.Store.View(h.t.Context(), func(tx store.Tx) error {
		page, _, err := tx.Events().List(store.EventQuery{Sandbox: s.ID, Limit: 100})
		for _, ev := range page {
			if ev.Type == sandbox.EventLanguageServer {
				all = append(all, ev)
			}
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// ended waits until n rows are those of servers that have ended.
func (h *house) ended(n int) {
	h.t.Helper()
	h.Await(h.t, "the ends of language servers", func() bool {
		done := 0
		for _, ev := range h.rows() {
			if ev.Done {
				done++
			}
		}
		return done == n
	})
}

func TestThereIsOneServerForEachProjectAndLanguage(t *testing.T) {
	h := open(t, "", languages.Options{})
	h.notStarted(python)
	h.start(python)
	first := h.asks(python, "the process")
	h.start(python)
	if again := h.asks(languages.At{Language: "python", Project: "./project/../project"}, "the process"); again != first {
		t.Errorf("a second start, by another name, began another process: %s, %s", first, again)
	}
	h.write("other/b.py", "b")
	other := languages.At{Language: "python", Project: "other"}
	h.start(other)
	if h.asks(other, "the process") == first {
		t.Error("two projects share a process")
	}
	for range 2 {
		if err := h.Languages.Stop(t.Context(), alice, "box", other); err != nil {
			t.Fatal(err)
		}
	}
	h.ended(1)
	h.notStarted(other)
	if h.asks(python, "the process") != first {
		t.Error("a stop of one ended another")
	}
	for _, ev := range h.rows() {
		if ev.Language != "python" || ev.Command != "pyright-langserver" || ev.Actor != "alice" {
			t.Errorf("the record: %+v", ev)
		}
	}

	for i := range languages.MaxServers {
		at := languages.At{Language: "python", Project: fmt.Sprintf("p%d", i)}
		h.write(at.Project+"/x.py", "x")
		if err := h.Languages.Start(t.Context(), alice, "box", at); (i == languages.MaxServers-1) != fault.Is(err, fault.Exhausted) {
			t.Errorf("server %d: %v", i+2, err)
		}
	}
}

func TestAServerKnowsWhatFilesSayNow(t *testing.T) {
	h := open(t, "", languages.Options{})
	h.start(python)
	says := func(path, text string, version int) {
		t.Helper()
		all, err := h.Languages.DocumentSymbols(t.Context(), alice, "box", python, path)
		if err != nil || len(all) != 1 || all[0].Name != text || all[0].Kind != version {
			t.Errorf("%s says %+v, %v; want %q, version %d", path, all, err, text, version)
		}
	}
	if err := h.Languages.Open(t.Context(), alice, "box", python, "project/a.py"); err != nil {
		t.Fatal(err)
	}
	says("a.py", "a", 1)
	h.write("project/a.py", "another")
	says("project/a.py", "another", 2)
	if list, err := h.Languages.Complete(t.Context(), alice, "box", python, "a.py", lsp.Position{}); err != nil || list.Items[0].Label != "another" {
		t.Errorf("completions of it: %+v, %v", list, err)
	}
	h.write("b.py", "beside the project")
	says("b.py", "beside the project", 1)
	h.write("project/b.py", "in it")
	says("b.py", "in it", 1)
	if got := h.asks(python, "the files"); got != "3" {
		t.Errorf("%s files are open, not 3", got)
	}
	if err := h.Files.RemoveFile(t.Context(), alice, "box", "project/b.py", sandbox.RemoveFileOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := h.asks(python, "the files"); got != "2" {
		t.Errorf("%s files are open, not 2", got)
	}
	for range 2 {
		if err := h.Languages.Close(t.Context(), alice, "box", python, "a.py"); err != nil {
			t.Error(err)
		}
	}
	if got := h.asks(python, "the files"); got != "1" {
		t.Errorf("%s files are open, not 1", got)
	}
	says("a.py", "another", 1)

	h.write("project/large.py", strings.Repeat("x", languages.MaxFile+1))
	h.write("project/binary.py", "\xff")
	for path, code := range map[string]fault.Code{
		"none.py": fault.NotFound, "large.py": fault.TooLarge, "binary.py": fault.Invalid, "/": fault.Invalid, "": fault.Invalid, "a\x00": fault.Invalid,
	} {
		if err := h.Languages.Open(t.Context(), alice, "box", python, path); !fault.Is(err, code) {
			t.Errorf("open %q: %v; want %s", path, err, code)
		}
	}
	for i := range languages.MaxOpen + 1 {
		path := fmt.Sprintf("project/n%d.py", i)
		h.write(path, "x")
		err := h.Languages.Open(t.Context(), alice, "box", python, path)
		if err != nil && (i < languages.MaxOpen-2 || !fault.Is(err, fault.Exhausted)) {
			t.Fatalf("file %d: %v", i, err)
		}
		if i == languages.MaxOpen && err == nil {
			t.Error("there is no bound of files")
		}
	}
}

func TestAServerThatNobodyAsksEnds(t *testing.T) {
	h := open(t, "", languages.Options{Idle: 50 * time.Millisecond})
	h.start(python)
	h.ended(1)
	h.notStarted(python)
	h.start(python)
	h.ended(2)
}

func TestAStartWorksAfterARestart(t *testing.T) {
	h := open(t, "", languages.Options{})
	h.start(python)
	before := h.asks(python, "the process")
	h.Restart()
	h.ended(1)
	h.notStarted(python)
	if _, err := os.Stat("/proc/" + before); err == nil {
		t.Error("what the last server left running runs on")
	}
	h.start(python)
	if h.asks(python, "the process") == before {
		t.Error("the process is the same")
	}
}

func TestAServerEndsWithItsSandbox(t *testing.T) {
	h := open(t, "", languages.Options{})
	h.start(python)
	if _, err := h.Engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	h.ended(1)
	if _, err := h.Engine.Start(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	h.notStarted(python)
	h.start(python)
	if err := h.Engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Error(err)
	}
}

func TestAServerThatEndsIsStartedAgain(t *testing.T) {
	h := open(t, "", languages.Options{})
	h.start(python)
	if _, err := h.Languages.Symbols(t.Context(), alice, "box", python, "an end"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("asked for its end: %v", err)
	}
	h.start(python)
	late, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := h.Languages.Symbols(late, alice, "box", python, "silence"); !fault.Is(err, fault.Timeout) {
		t.Errorf("asked for silence: %v", err)
	}
	h.asks(python, "the process")
}

func TestAServerThatDoesNotHeedAStopIsKilled(t *testing.T) {
	h := open(t, "stubborn", languages.Options{})
	h.start(python)
	if err := h.Languages.Stop(t.Context(), alice, "box", python); err != nil {
		t.Fatal(err)
	}
	h.ended(1)
}

func TestWhatIsNoServerIsRefused(t *testing.T) {
	for how, c := range map[string]struct {
		code fault.Code
		says string
	}{"nonsense": {fault.Unavailable, "nonsense"}, "refuses": {fault.Unavailable, "it said: no license at all"}} {
		t.Run(how, func(t *testing.T) {
			h := open(t, how, languages.Options{})
			if err := h.Languages.Start(t.Context(), alice, "box", python); !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q", err, c.says)
			}
			h.ended(1)
			h.notStarted(python)
		})
	}
	h := open(t, "", languages.Options{})
	for _, c := range []struct {
		by   access.Caller
		ref  string
		at   languages.At
		code fault.Code
		says string
	}{
		{alice, "box", languages.At{Language: "typescript", Project: "project"}, fault.Unsupported, "typescript-language-server"},
		{alice, "box", languages.At{Language: "cobol", Project: "project"}, fault.Invalid, "cobol"},
		{alice, "box", languages.At{Language: "python", Project: "none"}, fault.Invalid, "none"},
		{alice, "box", languages.At{Language: "python", Project: "project/a.py"}, fault.Invalid, "not a directory"},
		{alice, "box", languages.At{Language: "python"}, fault.Invalid, "empty"},
		{alice, "none", python, fault.NotFound, "none"},
		{access.Caller{Project: "default", Actor: "bob", Scopes: []access.Scope{access.SandboxesRead}}, "box", python, fault.Denied, ""},
		{access.Caller{Project: "other", Actor: "eve", Scopes: alice.Scopes}, "box", python, fault.NotFound, ""},
	} {
		if err := h.Languages.Start(t.Context(), c.by, c.ref, c.at); !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of %s, %+v: %v; want %s", c.by.Actor, c.ref, c.at, err, c.code)
		}
	}
	if e := fault.As(h.Languages.Start(t.Context(), alice, "box", languages.At{Language: "typescript", Project: "project"})); !strings.Contains(e.Remedy, "image "+languages.Image) {
		t.Errorf("the remedy is %q", e.Remedy)
	}
}
