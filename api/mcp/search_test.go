// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"strings"
	"testing"
)

func TestSearchFiles(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	for path, content := range map[string]string{
		"src/a.py": "import os\ndef hello():\n    pass\n", "src/deep/b.py": "def Hello_again():\n\treturn\n",
		"notes [1].md": "say hello\n", "node_modules/x.js": "hello", "logo.bin": "hello\x00hello", "odd\nname": "hello\x1b[1m there\n",
	} {
		ok(t, s, "write_file", arguments{"sandbox": "box", "path": path, "content": content})
	}
	in := func(args arguments) arguments {
		args["sandbox"] = "box"
		return args
	}
	got := ok(t, s, "search_files", in(arguments{"pattern": `def \w+\(`}))
	if want := "2 lines in 4 files of /workspace · sandbox box"; verdict(got) != want {
		t.Errorf("verdict: got %q, want %q", verdict(got), want)
	}
	wantParts(t, got, "--- matches ---\nsrc/a.py:2: def hello():\nsrc/deep/b.py:1: def Hello_again():", "note: passed over: 1 binary files, 1 directories like .git and node_modules")
	got = ok(t, s, "search_files", in(arguments{"query": "hello", "ignore_case": true}))
	wantParts(t, got, "\nnotes [1].md:1: say hello\n", "src/deep/b.py:1:", `"odd\nname":1: hello there`)
	if strings.Contains(got, "\x1b") || strings.Contains(got, "\nname") {
		t.Errorf("a file's name or line has made its own:\n%s", got)
	}
	wantParts(t, ok(t, s, "search_files", in(arguments{"pattern": "hello", "path": "src", "glob": "*.py"})), "1 line in 2 files of /workspace/src", "\nsrc/a.py:2: ")
	wantParts(t, ok(t, s, "search_files", in(arguments{"pattern": "hello", "path": "/workspace/notes [1].md"})), "1 line in 1 file of /workspace", "notes [1].md:1: ")
	wantParts(t, ok(t, s, "search_files", in(arguments{"pattern": "hello", "ignore_case": "true", "limit": 1})), "1 line in ", "note: there are more")
	wantParts(t, ok(t, s, "search_files", in(arguments{"pattern": "absent"})), "nothing found in 4 files")
	ok(t, h.session("t-reader", stateless, nil), "search_files", in(arguments{"pattern": "hello"}))

	h.wrong(t, "search_files", in(arguments{"pattern": "("}), "error (invalid): argument pattern", "RE2", "next: ")
	h.wrong(t, "search_files", in(arguments{"pattern": "x{1000}{1000}"}), "error (invalid): argument pattern")
	h.wrong(t, "search_files", in(arguments{"pattern": "x", "glob": "[", "path": "src"}), "error (invalid): argument glob", "*.py")
	h.wrong(t, "search_files", in(arguments{"pattern": ""}), "argument pattern is empty", "list_files")
	h.wrong(t, "search_files", in(arguments{"pattern": "x", "path": "scr"}), "error (not_found)", `there is no "scr"`, "src")

	ok(t, s, "run_command", in(arguments{"command": "yes 'a line that is found' | head -n 3000 > many"}))
	got = ok(t, s, "search_files", in(arguments{"pattern": "found", "limit": 2000}))
	if len(got) > 42_000 {
		t.Errorf("the answer has %d bytes", len(got))
	}
	wantParts(t, got, "note: only the first 40000 characters are shown")
}

func TestListFilesOfATree(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	ok(t, s, "run_command", arguments{"sandbox": "box", "command": "mkdir -p a/b/c .git node_modules; touch a/1.py a/b/2.py a/b/c/3.py a/b/c/4.txt .git/config"})
	in := func(args arguments) arguments {
		args["sandbox"] = "box"
		return args
	}
	type entry struct{ Name, Type string }
	type folder struct {
		Path       string
		Entries    []entry
		More       bool
		NextCursor string `json:"next_cursor"`
	}
	names := func(f folder) string {
		var out []string
		for _, e := range f.Entries {
			out = append(out, e.Name)
		}
		return strings.Join(out, " ")
	}
	for name, c := range map[string]struct {
		args arguments
		want string
	}{
		"OneLevel":    {arguments{}, ".git a node_modules"},
		"TwoLevels":   {arguments{"depth": 2}, ".git a a/1.py a/b node_modules"},
		"ByName":      {arguments{"depth": 20, "glob": "*.py"}, "a/1.py a/b/2.py a/b/c/3.py"},
		"ByPath":      {arguments{"depth": 20, "glob": "a/b/**"}, "a/b a/b/2.py a/b/c a/b/c/3.py a/b/c/4.txt"},
		"OfAFolder":   {arguments{"path": "a", "depth": 2}, "1.py b b/2.py b/c"},
		"OfThatAlone": {arguments{"path": ".git"}, "config"},
	} {
		t.Run(name, func(t *testing.T) {
			got := structured[folder](t, call(t, s, "list_files", in(c.args)))
			if names(got) != c.want || got.More {
				t.Errorf("got %q, more: %v, want %q", names(got), got.More, c.want)
			}
		})
	}
	t.Run("InPages", func(t *testing.T) {
		var all []string
		args := in(arguments{"depth": 5, "limit": 2})
		for {
			res := call(t, s, "list_files", args)
			page := structured[folder](t, res)
			all = append(all, names(page))
			if !page.More {
				break
			}
			wantParts(t, text(t, res), `note: there are more; call again with cursor "`+page.NextCursor+`"`)
			args["cursor"] = page.NextCursor
		}
		if got, want := strings.Join(all, " "), ".git a a/1.py a/b a/b/2.py a/b/c a/b/c/3.py a/b/c/4.txt node_modules"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	h.wrong(t, "list_files", in(arguments{"path": "a/1.py"}), "error (invalid)", "read_file")
	h.wrong(t, "list_files", in(arguments{"depth": 21}), "argument depth 21 is outside 1 to 20")
	h.wrong(t, "list_files", in(arguments{"glob": "["}), "argument glob")
}
