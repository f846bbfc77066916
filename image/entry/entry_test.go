// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"sandpit.dev/fault"
)

func TestAnEntryBecomesSteps(t *testing.T) {
	e, err := Parse("x.yaml", []byte(`
name: my-tools
title: Tools of ours
aliases: [tools/mine:1]
base: python
apt: [ffmpeg, "libfoo2=1:2.3-1+deb12u1"]
pip: ["markitdown[pptx]", "pandas>=2,<3"]
npm: ["@types/node@22", typescript]
files:
  - {path: /opt/a, content: "text", mode: 755}
  - {path: /home/sandbox/b, from: b.txt, user: sandbox, mode: "0600"}
env: {TOOL: "a b"}
network: [example.org, github]
run:
  - echo one
  - {run: echo two, user: sandbox, dir: /tmp, timeout: 5s}
check: [tool --version]
start: [tool, serve, "--port=80"]
`), fstest.MapFS{"b.txt": {Data: []byte("beside")}})
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, s := range e.Steps {
		titles = append(titles, s.Title)
		if s.Env["TOOL"] != "a b" {
			t.Errorf("%s: env %v", s.Title, s.Env)
		}
		for _, argv := range s.Commands {
			if at := slices.Index(argv, "--"); at >= 0 && slices.ContainsFunc(argv[at+1:], func(a string) bool { return strings.HasPrefix(a, "-") }) {
				t.Errorf("an option among the packages: %q", argv)
			}
		}
	}
	want := []string{"apt: ffmpeg libfoo2=1:2.3-1+deb12u1", "pip: markitdown[pptx] pandas>=2,<3", "npm: @types/node@22 typescript", "files", "run: echo one", "run: echo two", "check: tool --version"}
	if !slices.Equal(titles, want) {
		t.Errorf("steps %q", titles)
	}
	if !slices.Equal(e.Presets, []string{"github", "debian", "python", "node"}) || !slices.Equal(e.Domains, []string{"example.org"}) {
		t.Errorf("network %q %q", e.Presets, e.Domains)
	}
	if f := e.Steps[3].Files; f[0].Mode != 0o755 || f[1].Mode != 0o600 || string(f[1].Content) != "beside" || f[1].User != "sandbox" {
		t.Errorf("files %+v", f)
	}
	if p := e.Packages; len(p) != 6 || p[2] != (Package{Pip, "markitdown"}) || p[4] != (Package{Npm, "@types/node"}) {
		t.Errorf("packages %v", p)
	}
	if !slices.Equal(e.Start, []string{"tool", "serve", "--port=80"}) {
		t.Errorf("start %q", e.Start)
	}
	if s, err := Parse("x.yaml", []byte("name: a\nbase: b\nstart: tool serve"), nil); err != nil || !slices.Equal(s.Start, []string{"/bin/sh", "-c", "tool serve"}) {
		t.Errorf("start as a text: %q, %v", s.Start, err)
	}
	if s := e.Steps[5]; s.User != "sandbox" || s.Dir != "/tmp" || e.Steps[6].User != "sandbox" || e.Steps[4].User != "root" {
		t.Errorf("users %+v", s)
	}
}

func TestWhatNoEntryCanSay(t *testing.T) {
	beside := fstest.MapFS{"large": {Data: make([]byte, maxContent+1)}, "dir/x": {Data: []byte("x")}}
	for text, says := range map[string]string{
		"":                                     "the file is empty",
		"- a":                                  "x.yaml:1: an entry is a mapping",
		"name: a\nbase: b\naptt: [x]":          "x.yaml:3: \"aptt\" is not a key of an entry; did you mean apt?",
		"name: a\nbase: b\nzzzzz: 1":           "is not a key",
		"name: a\nname: b":                     "x.yaml:2: name is given twice",
		"name: [a]":                            "name is a text",
		"name: ../etc\nbase: b":                "not a valid name",
		"name: cache\nbase: b":                 "not a valid name",
		"name: A\nbase: b":                     "not a valid name",
		"name: a":                              "has no base",
		"base: a":                              "has no name",
		"name: a\nbase: b":                     "adds nothing",
		"name: a\nbase: b\nstart: []":          "start has no program",
		"name: a\nbase: b\nstart: \"\"":        "start is empty",
		"name: a\nbase: b\nstart: {a: b}":      "start is a list",
		"name: a\nbase: b\nstart: [\"a\\0\"]":  "zero byte",
		"name: a\nbase: b\ntitle: \"x\\e[2J\"": "more than one line",
		"name: a\nbase: b\napt: x":             "apt is a list",
		"name: a\nbase: b\napt: [x, x]":        "apt: \"x\" is not a valid package",
		"name: a\nbase: b\napt: [xx, xx]":      "given twice",
		"name: a\nbase: b\napt: [\"-oAPT::Update::Pre-Invoke::=id\"]":         "not a valid package",
		"name: a\nbase: b\napt: [\"foo;id\"]":                                 "not a valid package",
		"name: a\nbase: b\napt: [\"foo\\nbar\"]":                              "not a valid package",
		"name: a\nbase: b\napt: [./evil.deb]":                                 "not a valid package",
		"name: a\nbase: b\npip: [\"--index-url=http://x\"]":                   "x.yaml:3: pip:",
		"name: a\nbase: b\npip: [\"git+https://x/y\"]":                        "not a valid package",
		"name: a\nbase: b\npip: [\"a; import os\"]":                           "not a valid package",
		"name: a\nbase: b\npip: [\"a @ file:///etc\"]":                        "not a valid package",
		"name: a\nbase: b\nnpm: [\"../x\"]":                                   "not a valid package",
		"name: a\nbase: b\nnpm: [\"a@$(id)\"]":                                "not a valid package",
		"name: a\nbase: b\nnpm: [\"a@http://x\"]":                             "not a valid package",
		"name: a\nbase: b\nenv: {\"A=B\": c}":                                 "not a valid name of a variable",
		"name: a\nbase: b\nenv: {A: \"x\\0\"}":                                "zero byte",
		"name: a\nbase: b\nnetwork: [\"http://x\"]":                           "neither",
		"name: a\nbase: b\nfiles: [{path: etc/x, content: y}]":                "not a valid path",
		"name: a\nbase: b\nfiles: [{path: /a/../b, content: y}]":              "not a valid path",
		"name: a\nbase: b\nfiles: [{path: /a, content: y, from: z}]":          "either content or from",
		"name: a\nbase: b\nfiles: [{path: /a, from: ../etc/shadow}]":          "not the name of a file beside",
		"name: a\nbase: b\nfiles: [{path: /a, from: /etc/shadow}]":            "not the name of a file beside",
		"name: a\nbase: b\nfiles: [{path: /a, from: dir}]":                    "is not a file of",
		"name: a\nbase: b\nfiles: [{path: /a, from: large}]":                  "is not a file of",
		"name: a\nbase: b\nfiles: [{path: /a, from: none}]":                   "cannot be read",
		"name: a\nbase: b\nfiles: [{path: /a, content: y, mode: 4755}]":       "not a valid mode",
		"name: a\nbase: b\nfiles: [{path: /a, content: y, user: nobody}]":     "not a valid user",
		"name: a\nbase: b\nfiles: [{path: /a, content: y, owner: root}]":      "is not a key of a file",
		"name: a\nbase: b\nrun: [\"\"]":                                       "is empty",
		"name: a\nbase: b\nrun: [{run: x, timeout: 3h}]":                      "not a valid time",
		"name: a\nbase: b\nrun: [{run: x, time: 3h}]":                         "is not a key of a command",
		"name: a\nbase: b\nrun: [{user: root}]":                               "has no run",
		"name: a\nbase: b\nrun: [{run: x, dir: tmp}]":                         "not a valid directory",
		"name: a\nbase: &x b\nenv: {A: y}\naliases: *x":                       "reference to another place",
		"name: a\nbase: b\nenv: {A: y}\n---\nname: c":                         "more than one document",
		"name: a\nbase: b\nrun: [" + strings.Repeat("x, ", maxList+1) + "]":   "has 257 elements",
		"name: a\nbase: b\nrun: [\"" + strings.Repeat("x", maxText+1) + "\"]": "bytes, more than",
		"name: a\nbase: b\ntitle: " + strings.Repeat("x", maxTitle+1):         "more than 300",
		"#" + strings.Repeat("x", maxFile):                                    "more than 262144",
		"name: a\n\tbase: b":                                                  "x.yaml: yaml: line 2",
	} {
		e, err := Parse("x.yaml", []byte(text), beside)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.As(err).Message, says) {
			t.Errorf("%.80q: %+v, %v; want one that says %q", text, e, err, says)
		}
	}
}

func TestTheShippedEntries(t *testing.T) {
	all := Shipped()
	if len(all) == 0 || !slices.ContainsFunc(all, func(e Entry) bool { return e.Name == "data-science" }) {
		t.Fatalf("%v", all)
	}
	for _, e := range all {
		if e.Title == "" || len(e.Steps) == 0 || !strings.HasPrefix(e.Steps[len(e.Steps)-1].Title, "check: ") {
			t.Errorf("%s has no title, or no check at its end", e.Name)
		}
	}
}

func TestADirectoryOfEntries(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yaml", "name: data-science\nbase: python\nenv: {OWN: x}")
	write("a.yml", "name: first\nbase: data-science\nfiles: [{path: /a, from: content.txt}]")
	write("content.txt", "of a file")
	write("notes.txt", "not an entry")
	all, err := Catalogue(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
		if e.Name == "data-science" && e.Env["OWN"] != "x" {
			t.Error("the operator's entry did not take the place of ours")
		}
	}
	if slices.Index(names, "first") < 0 || len(names) != len(Shipped())+1 {
		t.Errorf("%q", names)
	}
	write("c.yaml", "name: first\nbase: python\nenv: {A: b}")
	if _, err := Catalogue(dir); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "a.yml") {
		t.Errorf("twice: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := Catalogue(dir); !fault.Is(err, fault.Invalid) {
		t.Errorf("a link that leads out: %v", err)
	}
	if _, err := Catalogue(filepath.Join(dir, "none")); !fault.Is(err, fault.Invalid) {
		t.Errorf("no directory: %v", err)
	}
}

func TestAChainTellsStepsApart(t *testing.T) {
	steps := func(texts ...string) (out []Step) {
		for _, s := range texts {
			out = append(out, Step{Title: s, Commands: [][]string{{s}}})
		}
		return out
	}
	one, same, other := Chain("sha256:a", steps("x", "y")), Chain("sha256:a", steps("x", "z")), Chain("sha256:b", steps("x", "y"))
	if one[0] != same[0] || one[1] == same[1] || one[0] == other[0] || one[1] == other[1] {
		t.Error(fmt.Sprint(one, same, other))
	}
	files := Chain("a", []Step{{Files: []File{{Path: "/a", Content: []byte("x")}}}, {Files: []File{{Path: "/a", Content: []byte("y")}}}})
	if again := Chain("a", []Step{{Files: []File{{Path: "/a", Content: []byte("y")}}}}); files[0] == again[0] {
		t.Error("the content of a file makes no difference")
	}
}
