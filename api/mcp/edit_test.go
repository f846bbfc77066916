// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestEditFile(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	in := func(args arguments) arguments {
		args["sandbox"] = "box"
		return args
	}
	put := func(path, content string) {
		t.Helper()
		ok(t, s, "write_file", in(arguments{"path": path, "content": content}))
	}
	content := func(path string) string {
		t.Helper()
		got := ok(t, s, "run_command", in(arguments{"command": "od -An -c " + path + " | tr -d ' \\n'"}))
		_, got, _ = strings.Cut(got, "---\n")
		return got
	}

	t.Run("ShowsWhatChanged", func(t *testing.T) {
		put("a.py", "import os\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n")
		ok(t, s, "run_command", in(arguments{"command": "chmod 755 a.py"}))
		got := ok(t, s, "edit_file", in(arguments{"path": "a.py", "old_text": "    return 1\n", "new_text": "    x = 1\n    return x\n"}))
		if !strings.HasPrefix(got, "edited /workspace/a.py: 1 place · ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "--- diff ---\n@@ -1,7 +1,8 @@\n import os\n \n def f():\n-    return 1\n+    x = 1\n+    return x\n \n \n def g():")
		wantParts(t, ok(t, s, "run_command", in(arguments{"command": "stat -c %a a.py; python3 -c \"import a; print(a.f())\" 2>&1 || true"})), "755")
	})

	t.Run("ReplacesAllWhereItIsAsked", func(t *testing.T) {
		put("b", "x\ny x\nz\n")
		h.wrong(t, "edit_file", in(arguments{"path": "b", "old_text": "x", "new_text": "w"}), "error (conflict)", "old_text is 2 times in /workspace/b, at lines 1, 2", "replace_all")
		if got := content("b"); got != `x\nyx\nz\n` {
			t.Errorf("it was changed: %s", got)
		}
		wantParts(t, ok(t, s, "edit_file", in(arguments{"path": "b", "old_text": "x", "new_text": "w", "replace_all": true})), "2 places", "-x\n-y x\n+w\n+y w\n z")
		if got := content("b"); got != `w\nyw\nz\n` {
			t.Errorf("got %s", got)
		}
	})

	t.Run("TakesTheNamesOfOtherTools", func(t *testing.T) {
		put("c", "one")
		ok(t, s, "edit_file", in(arguments{"file_path": "c", "old_string": "one", "new_string": "two"}))
		if got := content("c"); got != "two" {
			t.Errorf("got %s", got)
		}
	})

	t.Run("KeepsLineEnds", func(t *testing.T) {
		put("crlf", "one\r\ntwo\r\nthree\r\n")
		wantParts(t, ok(t, s, "edit_file", in(arguments{"path": "crlf", "old_text": "one\ntwo\n", "new_text": "1\n2\n"})), "CR LF")
		if got := content("crlf"); got != `1\r\n2\r\nthree\r\n` {
			t.Errorf("got %s", got)
		}
	})

	t.Run("FindsWhatWasMeant", func(t *testing.T) {
		put("d.go", "package d\n\nfunc F() {\n\tif x {\n\t\treturn\n\t}\n}\n")
		h.wrong(t, "edit_file", in(arguments{"path": "d.go", "old_text": "func F() {\n    if x {\n        return\n", "new_text": "-"}),
			"error (not_found): old_text is 0 times in /workspace/d.go; most like it are the lines 3 to 5",
			"\n  func F() {\n-     if x {\n+ →if x {\n-         return\n+ →→return", "next: call edit_file again")
		h.wrong(t, "edit_file", in(arguments{"path": "d.go", "old_text": "func G() {", "new_text": "-"}), "the lines 3 to 3", "- func G() {\n+ func F() {")
		h.wrong(t, "edit_file", in(arguments{"path": "d.go", "old_text": "completely different text", "new_text": "-"}), "old_text is 0 times", "nothing there is like it", "read_file")
	})

	t.Run("RefusesWhatItCannotDo", func(t *testing.T) {
		put("e", "text")
		put("grow", strings.Repeat("x", 9000))
		ok(t, s, "run_command", in(arguments{"command": "printf 'a\\0b' > bin; head -c 9000000 /dev/zero | tr '\\0' x > big"}))
		for name, c := range map[string]struct {
			args arguments
			want []string
		}{
			"NoFile":      {arguments{"path": "ee", "old_text": "a", "new_text": "b"}, []string{"error (not_found)", `there is no "ee"`, "has ", "e"}},
			"NoText":      {arguments{"path": "e", "old_text": "", "new_text": "b"}, []string{"argument old_text is empty", "write_file"}},
			"NoChange":    {arguments{"path": "e", "old_text": "text", "new_text": "text"}, []string{"argument new_text is the same as old_text"}},
			"BinaryFile":  {arguments{"path": "bin", "old_text": "a", "new_text": "b"}, []string{"error (unsupported): /workspace/bin is a binary file of 3 bytes", "get_file_url"}},
			"TooLarge":    {arguments{"path": "big", "old_text": "x", "new_text": "b"}, []string{"error (too_large)", "9000000 bytes", "8388608", "run_command"}},
			"TooLong":     {arguments{"path": "grow", "old_text": "x", "new_text": strings.Repeat("y", 1000), "replace_all": true}, []string{"error (too_large)", "9000000 bytes, more than 8388608"}},
			"NewTextMiss": {arguments{"path": "e", "old_text": "text"}, []string{"argument new_text is missing"}},
		} {
			t.Run(name, func(t *testing.T) { h.wrong(t, "edit_file", in(c.args), c.want...) })
		}
	})

	t.Run("ManyChangesAreBounded", func(t *testing.T) {
		var b strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&b, "line %d of many\n\n\n\n\n\n\n\n\n\n", i)
		}
		put("many", b.String())
		got := ok(t, s, "edit_file", in(arguments{"path": "many", "old_text": "of many", "new_text": "of several", "replace_all": true}))
		wantParts(t, got, "20000 places", "-line 0 of many\n+line 0 of several", "left out", "+line 19999 of several")
		if len(got) > 14_000 {
			t.Errorf("the answer has %d bytes", len(got))
		}
	})
}
