// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"strings"
	"testing"

	"sandpit.dev/api/mcp/toolset"
)

func TestFilesAreChangedAndShared(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupManage)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	ok(t, s, "write_file", arguments{"sandbox": "box", "path": "a", "content": "one two one"})
	ok(t, s, "run_command", arguments{"sandbox": "box", "command": "ln -s a link; mkdir d; echo one > d/b"})

	wantParts(t, ok(t, s, "change_file", arguments{"sandbox": "box", "path": "a", "mode": "750", "attributes": arguments{"source": "hand", "n": "1"}}),
		"changed 1 file or directory · sandbox box", "mode 750", "attribute source=hand")
	if got := ok(t, s, "change_file", arguments{"sandbox": "box", "path": "a", "attributes": arguments{"n": ""}}); strings.Contains(got, "attribute n") {
		t.Errorf("an empty value removes nothing: %s", got)
	}
	h.wrong(t, "change_file", arguments{"sandbox": "box", "path": "link", "mode": "777"}, "is a link")
	h.wrong(t, "change_file", arguments{"sandbox": "box", "path": "a", "mode": "4777"}, "not a valid octal permission")
	h.wrong(t, "change_file", arguments{"sandbox": "box", "path": "a"}, "does not say what to change")

	wantParts(t, ok(t, s, "replace_in_files", arguments{"sandbox": "box", "files": []string{"a", "d/b", "none"}, "pattern": "one", "replacement": "1"}),
		"3 replacements in 2 of 3 files · sandbox box", "a: 2", "none: not changed")
	wantParts(t, ok(t, s, "read_file", arguments{"sandbox": "box", "path": "a"}), "1 two 1")
	h.wrong(t, "replace_in_files", arguments{"sandbox": "box", "files": "a", "pattern": "(", "replacement": "", "regex": true}, "not a valid regular expression")

	wantParts(t, ok(t, s, "get_upload_url", arguments{"sandbox": "box", "path": "in.csv", "max_mb": 1}), "in.csv can be written by PUT", "/files/spf_", "good until")
	h.wrong(t, "get_upload_url", arguments{"sandbox": "box", "path": "d/"}, "is a directory's")
}
