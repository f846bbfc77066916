// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"strings"
	"testing"

	"sandpit.dev/api/mcp/toolset"
)

// TestFailures shows that every error names the cause, the value and the next call.
func TestFailures(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupRuns)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	ok(t, s, "create_sandbox", arguments{"name": "down"})
	if _, err := h.engine.Stop(t.Context(), callers["t-alice"], "down"); err != nil {
		t.Fatal(err)
	}
	ok(t, s, "write_file", arguments{"sandbox": "box", "path": "src/main.py", "content": "x"})
	ok(t, s, "write_file", arguments{"sandbox": "box", "path": "empty/x", "content": ""})
	ok(t, s, "run_command", arguments{"sandbox": "box", "command": "rm empty/x"})
	long := strings.Repeat("x", 5000)

	for name, c := range map[string]struct {
		tool string
		args arguments
		want []string
	}{
		"NoSuchSandbox":        {"run_command", arguments{"sandbox": "bxo", "command": "ls"}, []string{`error (not_found)`, `"bxo"`, "create_sandbox", "down, box"}},
		"AForeignSandbox":      {"run_command", arguments{"sandbox": "foreign", "command": "ls"}, []string{"error (not_found)", "create_sandbox"}},
		"NoSuchSandboxToRead":  {"read_file", arguments{"sandbox": "bxo", "path": "x"}, []string{`error (not_found)`, `"bxo"`, "create_sandbox", "box"}},
		"NoDefaultSandboxYet":  {"list_files", nil, []string{"error (not_found)", "default-alice", "create_sandbox"}},
		"StoppedByACaller":     {"run_command", arguments{"sandbox": "down", "command": "ls"}, []string{"error (state)", "down is stopped (user", `create_sandbox with {"name": "down"}`}},
		"NoCommand":            {"run_command", arguments{"sandbox": "box"}, []string{"error (invalid): argument command is missing", `{"command": "python3`}},
		"AnEmptyCommand":       {"run_command", arguments{"sandbox": "box", "command": ""}, []string{"error (invalid): argument command is empty", "for example"}},
		"ASlipInAName":         {"run_command", arguments{"command": "ls", "timeout_second": 5}, []string{"argument timeout_second is not an argument of this tool; did you mean timeout_seconds?"}},
		"ATimeoutOutOfBounds":  {"run_command", arguments{"command": "ls", "timeout_seconds": 1e9}, []string{"argument timeout_seconds 1000000000 is outside 0.1 to 86400"}},
		"ATimeoutOfWords":      {"run_command", arguments{"command": "ls", "timeout_seconds": "soon"}, []string{`argument timeout_seconds is "soon" and not a number`}},
		"AUserThatIsNone":      {"run_command", arguments{"sandbox": "box", "command": "ls", "as_user": "bob"}, []string{`argument as_user "bob" is not an account of this sandbox; there are sandbox, root`}},
		"AnEnvThatIsNone":      {"run_command", arguments{"command": "ls", "env": "x"}, []string{`argument env is neither an object of strings`}},
		"ABadVariable":         {"run_command", arguments{"sandbox": "box", "command": "ls", "env": arguments{"1 A": "x"}}, []string{"error (invalid): argument env", `"1 A"`}},
		"ACwdThatIsMissing":    {"run_command", arguments{"sandbox": "box", "command": "ls", "cwd": "nowhere"}, []string{"error (invalid): argument cwd", "nowhere"}},
		"TwoSpellings":         {"run_command", arguments{"command": "ls", "cmd": "pwd"}, []string{"argument command is given twice and differently, as cmd and as command"}},
		"NoFile":               {"read_file", arguments{"sandbox": "box", "path": "src/mian.py"}, []string{"error (not_found)", `there is no "src/mian.py"`, "/workspace/src/ has main.py"}},
		"NoDirectory":          {"read_file", arguments{"sandbox": "box", "path": "scr/main.py"}, []string{"error (not_found)", `"scr/main.py"`, `no directory "/workspace/scr/"`, "list_files"}},
		"NothingInTheFolder":   {"read_file", arguments{"sandbox": "box", "path": "empty/x"}, []string{"/workspace/empty/ is empty"}},
		"ADirectoryRead":       {"read_file", arguments{"sandbox": "box", "path": "src"}, []string{"error (", "src", "list_files"}},
		"AFileListed":          {"list_files", arguments{"sandbox": "box", "path": "src/main.py"}, []string{"error (", "main.py", "read_file"}},
		"ALineBeyondTheEnd":    {"read_file", arguments{"sandbox": "box", "path": "src/main.py", "start_line": 7}, []string{"argument start_line 7 is beyond the end", "has 1 lines", "from 1 to 1"}},
		"APathThatIsTooLong":   {"write_file", arguments{"sandbox": "box", "path": long, "content": ""}, []string{"error (invalid): argument path has 5000 bytes, more than"}},
		"BrokenBase64":         {"write_file", arguments{"sandbox": "box", "path": "x", "content": "%%", "encoding": "base64"}, []string{"argument content is not base64"}},
		"AModeThatIsNone":      {"write_file", arguments{"sandbox": "box", "path": "x", "content": "", "mode": "rwx"}, []string{`argument mode "rwx" is not a valid octal permission`}},
		"TooMuchContent":       {"write_file", arguments{"sandbox": "box", "path": "x", "content": strings.Repeat("x", 8<<20+1)}, []string{"argument content has 8388609 bytes, more than 8388608", "REST"}},
		"ANetwork":             {"create_sandbox", arguments{"name": "net", "network": "open"}, []string{"error (unsupported)", "no network"}},
		"NetworkEnabled":       {"create_sandbox", arguments{"name": "net", "network_enabled": true}, []string{"error (unsupported)"}},
		"AnUnknownImage":       {"create_sandbox", arguments{"name": "img", "image": "windows"}, []string{"error (not_found)", `"windows"`, "python, node"}},
		"AnotherImage":         {"create_sandbox", arguments{"name": "box", "image": "node"}, []string{"error (exists)", "node", "another name"}},
		"ANameWithASlash":      {"create_sandbox", arguments{"name": "a/b"}, []string{"error (invalid): argument name", "a/b"}},
		"MemoryOutOfBounds":    {"create_sandbox", arguments{"memory_mb": 1}, []string{"argument memory_mb 1 is outside 16 to 1048576"}},
		"HalfAMegabyte":        {"create_sandbox", arguments{"memory_mb": 99.5}, []string{"argument memory_mb is 99.5 and not a whole number"}},
		"ManyAtOnce":           {"create_sandbox", arguments{"memory_mb": 1, "cpus": "x"}, []string{"argument memory_mb", "argument cpus"}},
		"NothingToDelete":      {"delete_sandbox", nil, []string{"argument sandbox is missing", `{"sandbox"`}},
		"ABadCursor":           {"list_sandboxes", arguments{"cursor": "x"}, []string{"error (", "cursor"}},
		"AStateThatIsNone":     {"list_sandboxes", arguments{"state": "dead"}, []string{`argument state "dead" is not one of creating, running`}},
		"NoIdentifier":         {"run_sandbox", arguments{"commands": []any{"ls"}}, []string{"argument identifier is missing"}},
		"ABadIdentifier":       {"run_sandbox", arguments{"identifier": "a b", "commands": []any{"ls"}}, []string{`argument identifier "a b" is not of 1 to 36`}},
		"ALongIdentifier":      {"run_sandbox", arguments{"identifier": strings.Repeat("a", 37), "commands": []any{"ls"}}, []string{"argument identifier"}},
		"NoCommands":           {"run_sandbox", arguments{"identifier": "a", "commands": []any{}}, []string{"argument commands has 0 entries"}},
		"CommandsThatAreNone":  {"run_sandbox", arguments{"identifier": "a", "commands": "ls"}, []string{`argument commands is "ls" and not a list`}},
		"ACommandThatIsNone":   {"run_sandbox", arguments{"identifier": "a", "commands": []any{arguments{}}}, []string{"argument commands[0] has neither shell nor argv"}},
		"BothShellAndArgv":     {"run_sandbox", arguments{"identifier": "a", "commands": []any{arguments{"shell": "ls", "argv": []string{"ls"}}}}, []string{"argument commands[0] has both shell and argv"}},
		"ARelativeCwd":         {"run_sandbox", arguments{"identifier": "a", "commands": []any{arguments{"shell": "ls", "cwd": "src"}}}, []string{`argument commands[0].cwd "src" is not absolute`}},
		"TimeoutOfARun":        {"run_sandbox", arguments{"identifier": "a", "commands": []any{arguments{"shell": "ls", "timeout_ms": 86400001}}}, []string{"argument commands[0].timeout_ms 86400001 is more than 86400000"}},
		"AnUnknownOption":      {"run_sandbox", arguments{"identifier": "a", "commands": []any{"ls"}, "options": arguments{"ttl": 5}}, []string{"argument options.ttl is not known"}},
		"AUserOfARunThatIsNot": {"run_sandbox", arguments{"identifier": "a", "commands": []any{"ls"}, "options": arguments{"as_user": "ad min"}}, []string{`as_user "ad min" is not a valid name`}},
	} {
		t.Run(name, func(t *testing.T) {
			res := call(t, s, c.tool, c.args)
			got := text(t, res)
			if !res.IsError {
				t.Fatalf("it worked:\n%s", got)
			}
			wantParts(t, got, append(c.want, "\nnext: ")...)
			if len(got) > 1500 {
				t.Errorf("the message has %d bytes", len(got))
			}
			for _, secret := range []string{"Bearer", "/tmp/", "runtime error"} {
				if strings.Contains(got, secret) {
					t.Errorf("the message tells %q:\n%s", secret, got)
				}
			}
		})
	}

	t.Run("AToolThatTheTokenMayNotUse", func(t *testing.T) {
		for _, version := range []string{handshake, stateless} {
			res := call(t, h.session("t-reader", version, nil), "run_command", arguments{"command": "ls"})
			if !res.IsError {
				t.Error("it worked")
			}
			wantParts(t, text(t, res), "error (denied)", "sandboxes:write", "reader", "next: ")
		}
	})

	t.Run("AToolThatIsNone", func(t *testing.T) {
		if _, err := s.CallTool(t.Context(), toolCall("format_disk")); err == nil || !strings.Contains(err.Error(), "format_disk") {
			t.Errorf("got %v, want a protocol error that names it", err)
		}
	})

	t.Run("NothingIsLeftOfThem", func(t *testing.T) {
		got := ok(t, s, "list_sandboxes", nil)
		if !strings.HasPrefix(got, "2 of 2 sandboxes") {
			t.Errorf("got:\n%s", got)
		}
	})
}
