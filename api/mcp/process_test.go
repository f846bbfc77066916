// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// nextCall takes the call that an answer names out of it.
func nextCall(t *testing.T, answer string) (tool string, args arguments) {
	t.Helper()
	m := regexp.MustCompile(`next: (\w+) with (\{.*?\})`).FindStringSubmatch(answer)
	if m == nil {
		t.Fatalf("no next call in:\n%s", answer)
	}
	if err := json.Unmarshal([]byte(m[2]), &args); err != nil {
		t.Fatalf("the next call's arguments %s: %v", m[2], err)
	}
	return m[1], args
}

// follow makes the next call that an answer names.
func (h *house) follow(s *sdk.ClientSession, answer string) string {
	h.t.Helper()
	tool, args := nextCall(h.t.(*testing.T), answer)
	return ok(h.t, s, tool, args)
}

func TestACommandThatTakesLongGoesOnAsAProcess(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	got := ok(t, s, "run_command", arguments{
		"sandbox": "box", "wait_seconds": 0.3, "command": "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 5",
	})
	if !strings.HasPrefix(got, "still running after ") {
		t.Fatalf("verdict: got %q", verdict(got))
	}
	wantParts(t, got, ": process ", "stop_process", "--- stdout (4 bytes) ---\none")
	ok(t, s, "write_file", arguments{"sandbox": "box", "path": "go", "content": ""})
	got = h.follow(s, got)
	if !strings.HasPrefix(got, "process ") || !strings.Contains(verdict(got), " ended: exit 5 after ") {
		t.Errorf("verdict: got %q", verdict(got))
	}
	wantParts(t, got, "--- stdout (4 bytes) ---\ntwo")
	if strings.Contains(got, "one") {
		t.Errorf("what was seen is told again:\n%s", got)
	}
}

func TestBackground(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	start := func(t *testing.T, command string) (process string) {
		t.Helper()
		got := ok(t, s, "run_command", arguments{"sandbox": "box", "background": true, "wait_seconds": 0.2, "command": command})
		if !strings.HasPrefix(got, "started in the background: process ") {
			t.Fatalf("got %q", got)
		}
		_, args := nextCall(t, got)
		return args["process"].(string)
	}
	on := func(p string, args arguments) arguments {
		args["sandbox"], args["process"] = "box", p
		return args
	}

	t.Run("ItIsReadWrittenAndStopped", func(t *testing.T) {
		p := start(t, "while read -r line; do echo \"got $line\"; done; echo over")
		got := ok(t, s, "write_process", on(p, arguments{"input": "a\nb\n"}))
		if !strings.HasPrefix(got, "wrote 4 bytes · process "+p+" runs for ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "got a\ngot b")
		got = ok(t, s, "write_process", on(p, arguments{"input": "c\n"}))
		wantParts(t, got, "got c")
		if strings.Contains(got, "got a") {
			t.Errorf("it tells what was answered before:\n%s", got)
		}
		wantParts(t, ok(t, s, "read_process", on(p, arguments{})), "got a\ngot b\ngot c")
		wantParts(t, ok(t, s, "read_process", on(p, arguments{"tail_lines": 1})), "--- stdout (6 bytes) ---\ngot c")
		wantParts(t, ok(t, s, "write_process", on(p, arguments{"end_input": true})), "wrote 0 bytes, and its input is closed", "ended: exit 0", "over")
		h.wrong(t, "write_process", on(p, arguments{"input": "x"}), "error (state)", "process "+p+" ended: exit 0", "/tmp/sandpit/"+p+".log", "run_command")
		wantParts(t, ok(t, s, "read_file", arguments{"sandbox": "box", "path": "/tmp/sandpit/" + p + ".log"}), "got a")
	})

	t.Run("OneThatFailsAtOnceSaysSo", func(t *testing.T) {
		got := ok(t, s, "run_command", arguments{"sandbox": "box", "background": true, "command": "echo no >&2; exit 9"})
		if !strings.Contains(verdict(got), " ended: exit 9 after ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "--- stderr (3 bytes) ---\nno")
	})

	t.Run("StopEndsAllThatItStarted", func(t *testing.T) {
		p := start(t, "trap 'echo asked; exit 3' TERM; while :; do sleep 0.02; done")
		got := ok(t, s, "stop_process", on(p, arguments{}))
		wantParts(t, got, "process "+p+" ended: exit 3", "it ended after SIGTERM", "asked")
		wantParts(t, ok(t, s, "stop_process", on(p, arguments{})), "had ended already", "exit 3")
	})

	t.Run("OneThatDoesNotHeedIsKilled", func(t *testing.T) {
		p := start(t, "trap '' TERM INT; while :; do sleep 0.02; done")
		wantParts(t, ok(t, s, "stop_process", on(p, arguments{"signal": "int"})), "process "+p+" runs for", "SIGINT was sent; it goes on", "read_process")
		wantParts(t, ok(t, s, "stop_process", on(p, arguments{"signal": "KILL"})), "ended: exit 137", "it was killed")
		h.wrong(t, "stop_process", on(p, arguments{"signal": "NOPE"}), `argument signal "NOPE" is not a valid signal; use TERM`)
	})

	t.Run("LongOutputIsCutAndKept", func(t *testing.T) {
		p := start(t, "seq 1 100000; read -r x")
		got := ok(t, s, "read_process", on(p, arguments{"max_output_chars": 1000}))
		if n := utf8.RuneCountInString(got); n > 1600 {
			t.Errorf("the answer has %d characters", n)
		}
		wantParts(t, got, "\n1\n2\n3\n", "lines left out …]", "\n100000", `read_process with {"sandbox": "box", "process": "`+p+`", "tail_lines": 200}`)
		got = ok(t, s, "read_process", on(p, arguments{"tail_lines": 3}))
		wantParts(t, got, "---\n99998\n99999\n100000")
		ok(t, s, "write_process", on(p, arguments{"end_input": true}))
		wantParts(t, ok(t, s, "read_process", on(p, arguments{"max_output_chars": 1000})), "all of it is in the file /tmp/sandpit/"+p+".log")
	})

	t.Run("AForegroundCommandHasNoInput", func(t *testing.T) {
		got := ok(t, s, "run_command", arguments{"sandbox": "box", "wait_seconds": 0.2, "command": "while [ ! -e stop ]; do sleep 0.02; done"})
		_, args := nextCall(t, got)
		h.wrong(t, "write_process", on(args["process"].(string), arguments{"input": "x"}), "error (state)", `run_command and {"background": true}`)
		ok(t, s, "write_file", arguments{"sandbox": "box", "path": "stop", "content": ""})
		h.follow(s, got)
	})

	t.Run("ProcessesThatAreNoneAreToldOf", func(t *testing.T) {
		p := start(t, "read -r x # the one that runs")
		for _, tool := range []string{"read_process", "write_process", "stop_process"} {
			args := arguments{"sandbox": "box", "process": "nope"}
			if tool == "write_process" {
				args["input"] = "x"
			}
			h.wrong(t, tool, args, "error (not_found)", `there is no process "nope" in the sandbox box`, "use one that runs: "+p, "the one that runs")
		}
		h.wrong(t, "write_process", on(p, arguments{}), "argument input is empty")
		h.wrong(t, "read_process", on(p, arguments{"since": 5, "tail_lines": 2}), "argument tail_lines is given beside since")
		h.wrong(t, "read_process", on(p, arguments{"since": 1000}), "error (invalid): argument since 1000 is not a frame")
		ok(t, s, "stop_process", on(p, arguments{}))
		h.wrong(t, "read_process", arguments{"sandbox": "box", "process": "nope"}, "no process runs there", "run_command")
	})

	t.Run("AllEndAtOnceAndFilesStay", func(t *testing.T) {
		one, two := start(t, "sleep 600"), start(t, "trap '' TERM; while :; do sleep 600; done")
		ok(t, s, "write_file", arguments{"sandbox": "box", "path": "kept", "content": "kept"})
		wantParts(t, ok(t, s, "stop_process", arguments{"sandbox": "box", "all": true}), "killed all that ran in sandbox box; its files are as they were")
		for _, p := range []string{one, two} {
			wantParts(t, ok(t, s, "read_process", on(p, arguments{})), "process "+p+" ended: exit 137 (killed")
		}
		wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "cat kept"}), "kept")
		h.wrong(t, "stop_process", on(one, arguments{"all": true}), "argument all is given beside process or signal")
		h.wrong(t, "stop_process", arguments{"sandbox": "box"}, "argument process is empty", "all: true")
	})

	t.Run("TheProcessOfASandboxThatIsDownHasItsEnd", func(t *testing.T) {
		p := start(t, "read -r x")
		if _, err := h.engine.Stop(t.Context(), callers["t-alice"], "box"); err != nil {
			t.Fatal(err)
		}
		wantParts(t, ok(t, s, "read_process", on(p, arguments{})), "process "+p+" ended: exit 143 (killed: its sandbox was stopped)", "its output is not kept any more")
		wantParts(t, ok(t, s, "stop_process", arguments{"sandbox": "box", "all": true}), "nothing runs in sandbox box, which is stopped")
	})
}
