// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"fmt"
	"strings"
	"testing"

	"sandpit.dev/sandbox"
)

// TestChangesOfManyFilesShowThoseThatMatter: what a clone, a commit or an installation
// writes for itself does not hide the files that were worked on.
func TestChangesOfManyFilesShowThoseThatMatter(t *testing.T) {
	made := func(paths ...string) (out []sandbox.FileChange) {
		for _, p := range paths {
			out = append(out, sandbox.FileChange{Path: p, Action: "created", Size: 1})
		}
		return out
	}
	var hooks []string
	for i := range 50 {
		hooks = append(hooks, fmt.Sprintf("repo/.git/hooks/%02d", i))
	}
	var files []string
	shown := "changed files (25):"
	for i := range 25 {
		files = append(files, fmt.Sprintf("src/%02d", i))
		if i < maxChanges {
			shown += "\n  created " + files[i] + " (1 bytes)"
		}
	}
	for name, x := range map[string]struct {
		changes []sandbox.FileChange
		total   int
		want    string
	}{
		"a clone": {
			made(append(append([]string{"repo", "repo/.git"}, hooks...), "repo/README", "repo/x.git/y")...), 55,
			"changed files (55):\n  created repo (1 bytes)\n  51 changes in repo/.git\n  created repo/README (1 bytes)\n  created repo/x.git/y (1 bytes)\n  … and 1 more; list_files shows them",
		},
		"several": {
			made("a/.venv/bin/python", "a/node_modules/b/.git/c", "a/node_modules/d", "b/__pycache__/x.pyc"), 4,
			"changed files (4):\n  1 change in a/.venv\n  2 changes in a/node_modules\n  1 change in b/__pycache__",
		},
		"a name that is not printed": {made(".git\n/x", "\n/.git/x"), 2, "changed files (2):\n  created \".git\\n/x\" (1 bytes)\n  1 change in \"\\n/.git\""},
		"more than are told":         {made(files...), 25, shown + "\n  … and 5 more; list_files shows them"},
	} {
		if got := strings.Join(Changed(x.changes, x.total, true), "\n"); got != x.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, x.want)
		}
	}
}
