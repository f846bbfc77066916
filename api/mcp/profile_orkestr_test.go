// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/profile/orkestr"
	"sandpit.dev/sandbox"
)

// at is a session with what the server has at a path.
func (h *house) at(path, token, version string) *sdk.ClientSession {
	h.t.Helper()
	c := *h
	c.url = h.url + path
	return c.session(token, version, nil)
}

// refused calls a tool that has to refuse.
func refused(t testing.TB, s *sdk.ClientSession, tool string, args arguments, parts ...string) {
	t.Helper()
	res := call(t, s, tool, args)
	if !res.IsError {
		t.Errorf("%s %v was done: %s", tool, args, text(t, res))
	}
	wantParts(t, text(t, res), parts...)
}

// read calls a tool whose text is JSON, and no more than that.
func read[T any](t testing.TB, s *sdk.ClientSession, tool string, args arguments) T {
	t.Helper()
	var v T
	got := ok(t, s, tool, args)
	if err := json.Unmarshal([]byte(got), &v); err != nil {
		t.Fatalf("%s: %v in %s", tool, err, got)
	}
	return v
}

// orkestrBox is a sandbox as that profile shows it.
type orkestrBox struct {
	ID, Status, Template, Size, Network, Region string
	CPU                                         float64
	MemoryMB                                    int `json:"memory_mb"`
	Metadata                                    map[string]string
	ExpiresAt                                   *time.Time `json:"expires_at"`
}

type outcome struct {
	Stdout     string
	Stderr     string
	ExitCode   *int   `json:"exit_code"`
	DurationMS *int64 `json:"duration_ms"`
	Cause      string
	Truncated  bool
	Notes      []string
}

func TestOrkestrToolsList(t *testing.T) {
	t.Parallel()
	h := open(t)
	var first []string
	for _, path := range []string{"/mcp/orkestr", orkestr.Alias} {
		for _, version := range []string{handshake, stateless} {
			res := listed(t, h.at(path, "t-alice", version))
			if got := toolNames(res); first == nil {
				first = got
				checkTools(t, res.Tools, "testdata/tools-orkestr.json", 1600)
			} else if !slices.Equal(got, first) {
				t.Errorf("%s, %s: got %v, want %v", path, version, got, first)
			}
			got := toolNames(listed(t, h.at(path, "t-reader", version)))
			if want := []string{"get_sandbox_limits", "list_files", "read_file"}; !slices.Equal(got, want) {
				t.Errorf("%s, %s: of a reader's token: got %v, want %v", path, version, got, want)
			}
		}
	}
	want := []string{
		"create_sandbox", "get_sandbox_limits", "list_files", "pause_sandbox", "read_file", "resume_sandbox",
		"run_code", "run_shell", "terminate_sandbox", "write_file",
	}
	if !slices.Equal(first, want) {
		t.Errorf("got %v, want %v", first, want)
	}
}

func TestOrkestrSandboxes(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.at("/mcp/orkestr", "t-alice", handshake)
	args := arguments{
		"template": "python-3.12", "size": "medium", "timeout_seconds": 600, "env": arguments{"A": "b"},
		"metadata": arguments{"task": "one"}, "network": "off", "region": nil,
	}
	box := read[orkestrBox](t, s, "create_sandbox", args)
	if box.Status != "running" || box.Template != "python-3.12" || box.Size != "medium" || box.CPU != 2 || box.MemoryMB != 4096 ||
		box.Network != "off" || box.Metadata["task"] != "one" || box.ExpiresAt == nil || time.Until(*box.ExpiresAt) > 10*time.Minute {
		t.Errorf("got %+v", box)
	}
	if got := structured[orkestrBox](t, call(t, s, "create_sandbox", args)); got.ID == box.ID || got.Status != "running" {
		t.Errorf("the structured answer of another create: %+v", got)
	}
	if got := read[orkestrBox](t, s, "create_sandbox", arguments{"template": "node"}); got.ExpiresAt != nil || got.Metadata == nil || got.Network != "off" {
		t.Errorf("with nothing but a template: %+v", got)
	}
	refused(t, s, "create_sandbox", nil, "argument template is missing", `next: call create_sandbox again, for example with {"template": "python"}`)
	refused(t, s, "create_sandbox", arguments{"template": "python", "timeout_seconds": 9}, "argument timeout_seconds 9 is outside 10 to 31622400")
	refused(t, s, "create_sandbox", arguments{"template": "python", "timeout_seconds": 31622401}, "argument timeout_seconds 31622401 is outside 10 to 31622400")
	refused(t, s, "create_sandbox", arguments{"template": "python", "on_timeout": "stop"}, `argument on_timeout "stop" is not one of kill, pause`)
	refused(t, s, "create_sandbox", arguments{"template": "python", "size": "huge"}, `argument size "huge" is not one of small, medium, large`)
	refused(t, s, "create_sandbox", arguments{"template": "tmpl_none"}, "error (not_found)", `"tmpl_none"`)
	refused(t, s, "create_sandbox", arguments{"template": "python", "region": "fsn1"}, "error (unsupported)", `"fsn1" is not here`, "next: leave region out")

	id := arguments{"sandbox_id": box.ID}
	if got := read[orkestrBox](t, s, "pause_sandbox", id); got.Status != "paused" || got.ID != box.ID {
		t.Errorf("paused: %+v", got)
	}
	refused(t, s, "run_shell", arguments{"sandbox_id": box.ID, "command": "true"}, "error (state)", "next: call resume_sandbox")
	if got := read[orkestrBox](t, s, "resume_sandbox", id); got.Status != "running" {
		t.Errorf("resumed: %+v", got)
	}
	for _, tool := range []string{"pause_sandbox", "resume_sandbox", "terminate_sandbox"} {
		refused(t, s, tool, nil, "argument sandbox_id is missing")
		refused(t, s, tool, arguments{"sandbox_id": ""}, "argument sandbox_id is empty")
		refused(t, s, tool, arguments{"sandbox_id": "nosuchsandbox123"}, "error (not_found)", "next: make one with create_sandbox", box.ID)
	}

	type ended struct{ ID, Status string }
	for range 2 { // what is gone is gone
		if got := read[ended](t, s, "terminate_sandbox", id); got.ID != box.ID || got.Status != "terminated" {
			t.Errorf("got %+v", got)
		}
	}
	refused(t, s, "run_shell", arguments{"sandbox_id": box.ID, "command": "true"}, "error (not_found)", "next: it was deleted at ", "create_sandbox")
}

func TestOrkestrLimits(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.at("/mcp/orkestr", "t-reader", handshake)
	type limits struct {
		Sizes map[string]struct {
			CPU      float64
			MemoryMB int `json:"memory_mb"`
		}
		Max         struct{ CPUs float64 }
		Networks    []string
		Regions     []string
		Timeout     struct{ Min, Max float64 } `json:"timeout_seconds"`
		Command     struct{ Default float64 }  `json:"command_timeout_seconds"`
		Sandboxes   map[string]int
		Concurrency struct{ Running int }
	}
	got := read[limits](t, s, "get_sandbox_limits", nil)
	if len(got.Sizes) != 3 || got.Sizes["small"].MemoryMB != 1024 || got.Sizes["large"].CPU != 4 || got.Max.CPUs != sandbox.MaxCPU ||
		!slices.Equal(got.Networks, []string{"off"}) || len(got.Regions) != 1 || got.Timeout.Min != 10 ||
		got.Timeout.Max != sandbox.MaxClock.Seconds() || got.Command.Default != 600 || got.Concurrency.Running != 0 {
		t.Errorf("got %+v", got)
	}
	wantParts(t, ok(t, s, "get_sandbox_limits", arguments{"x": 1}), `"budget":null`)
	alice := h.at("/mcp/orkestr", "t-alice", handshake)
	region := got.Regions[0]
	box := read[orkestrBox](t, alice, "create_sandbox", arguments{"template": "python", "region": region})
	ok(t, alice, "create_sandbox", arguments{"template": "python"})
	ok(t, alice, "pause_sandbox", arguments{"sandbox_id": box.ID})
	if got := read[limits](t, s, "get_sandbox_limits", nil); got.Sandboxes["running"] != 1 || got.Sandboxes["paused"] != 1 || got.Concurrency.Running != 1 {
		t.Errorf("what is in use: %+v", got)
	}
}

func TestOrkestrRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.at("/mcp/orkestr", "t-alice", handshake)
	box := read[orkestrBox](t, s, "create_sandbox", arguments{"template": "python", "env": arguments{"A": "of-the-box"}}).ID
	run := func(tool string, args arguments) outcome {
		t.Helper()
		args["sandbox_id"] = box
		o := read[outcome](t, s, tool, args)
		if o.ExitCode == nil || o.DurationMS == nil {
			t.Fatalf("%s %v: an answer without exit_code or duration_ms", tool, args)
		}
		return o
	}
	ok(t, s, "write_file", arguments{"sandbox_id": box, "path": "sub/x", "content": "x"})
	if got := run("run_shell", arguments{"command": "echo $A $B; pwd >&2; exit 3", "env": arguments{"B": "<&>"}, "cwd": "sub"}); got.Stdout != "of-the-box <&>\n" || !strings.HasSuffix(got.Stderr, "/sub\n") || *got.ExitCode != 3 {
		t.Errorf("got %+v", got)
	}
	if got := run("run_shell", arguments{"command": "sleep 60", "timeout": 0.2}); got.Cause != "timeout" || *got.ExitCode == 0 {
		t.Errorf("of one that takes too long: %+v", got)
	}
	got := run("run_shell", arguments{"command": "seq 100000"})
	if !got.Truncated || len(got.Notes) != 1 || len(got.Stdout) > 20_000 || !strings.HasPrefix(got.Stdout, "1\n2\n") || !strings.HasSuffix(got.Stdout, "100000\n") {
		t.Errorf("of much output: %d bytes, %v", len(got.Stdout), got.Notes)
	} else {
		wantParts(t, got.Notes[0], "/tmp/sandpit/", "read_file")
	}
	refused(t, s, "run_shell", arguments{"sandbox_id": box}, "argument command is missing")
	refused(t, s, "run_shell", arguments{"sandbox_id": box, "command": "true", "timeout": -1}, "argument timeout -1 is outside")
	refused(t, s, "run_shell", arguments{"sandbox_id": "", "command": "true"}, "argument sandbox_id is empty")

	if got := run("run_code", arguments{"language": "bash", "code": "x=1\ncat\necho $((x+1))"}); got.Stdout != "2\n" || *got.ExitCode != 0 {
		t.Errorf("bash: got %+v", got)
	}
	if got := run("run_code", arguments{"language": "bash", "code": "echo ${x:-none}"}); got.Stdout != "none\n" {
		t.Errorf("a second snippet sees the first: %+v", got)
	}
	for program, language := range map[string]string{"python3": "python", "node": "node"} {
		if _, err := exec.LookPath(program); err != nil {
			continue // the memory runtime runs what this host has
		}
		code := map[string]string{"python": "import sys\nprint(6*7)\nsys.exit(5)", "node": "console.log(6*7); process.exit(5)"}[language]
		if got := run("run_code", arguments{"language": language, "code": code}); got.Stdout != "42\n" || *got.ExitCode != 5 {
			t.Errorf("%s: got %+v", language, got)
		}
	}
	refused(t, s, "run_code", arguments{"sandbox_id": box, "language": "perl", "code": "1"}, `argument language "perl" is not one of python, node, bash`)
	refused(t, s, "run_code", arguments{"sandbox_id": box, "language": "bash", "code": ""}, "argument code is empty")
}

func TestOrkestrFiles(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.at("/mcp/orkestr", "t-alice", handshake)
	box := read[orkestrBox](t, s, "create_sandbox", arguments{"template": "python"}).ID
	type file struct {
		Path, Content string
		Size          int64
		Truncated     bool
	}
	put := func(path, content string) file {
		t.Helper()
		return read[file](t, s, "write_file", arguments{"sandbox_id": box, "path": path, "content": content})
	}
	get := func(path string) file {
		t.Helper()
		return read[file](t, s, "read_file", arguments{"sandbox_id": box, "path": path})
	}
	if got := put("src/é.txt", "<grüß>\n"); got.Path != "/workspace/src/é.txt" || got.Size != 9 {
		t.Errorf("got %+v", got)
	}
	if got := get("src/é.txt"); got.Content != "<grüß>\n" || got.Size != 9 || got.Truncated {
		t.Errorf("got %+v", got)
	}
	put("long", strings.Repeat("é", 100_000))
	if got := get("long"); got.Content != strings.Repeat("é", 40_000) || !got.Truncated || got.Size != 200_000 {
		t.Errorf("of a long one: %d bytes of %d, %v", len(got.Content), got.Size, got.Truncated)
	}
	put("odd", "a"+strings.Repeat("\U0001F600", 40_000)) // the bound on bytes goes through a character
	if got := get("odd"); got.Content != "a"+strings.Repeat("\U0001F600", 39_999) || !got.Truncated {
		t.Errorf("%d bytes, %v", len(got.Content), got.Truncated)
	}
	ok(t, s, "run_shell", arguments{"sandbox_id": box, "command": `printf 'a\0b' > bin`})
	refused(t, s, "read_file", arguments{"sandbox_id": box, "path": "bin"}, "error (unsupported)", "/workspace/bin is not text (3 bytes)", "next: look into it with run_shell")
	refused(t, s, "read_file", arguments{"sandbox_id": box, "path": "src/e.txt"}, "error (not_found)", `there is no "src/e.txt"`, "list_files")
	refused(t, s, "read_file", arguments{"sandbox_id": box, "path": "src"}, "error (invalid)", "it is a directory: list_files")
	refused(t, s, "write_file", arguments{"sandbox_id": box, "path": "x"}, "argument content is missing")
	refused(t, s, "write_file", arguments{"sandbox_id": box, "path": "x", "content": strings.Repeat("x", 8<<20+1)}, "argument content has 8388609 bytes", "run_shell")

	type folder struct {
		Path    string
		Entries []struct {
			Name, Type string
			Size       int64
			ModifiedAt time.Time `json:"modified_at"`
		}
	}
	for _, args := range []arguments{{"sandbox_id": box}, {"sandbox_id": box, "path": "/workspace"}} {
		got := read[folder](t, s, "list_files", args)
		if len(got.Entries) != 4 || got.Path != "/workspace" || got.Entries[0].Name != "bin" || got.Entries[0].Size != 3 || got.Entries[0].Type != "file" || got.Entries[3].Type != "dir" || got.Entries[0].ModifiedAt.IsZero() {
			t.Errorf("got %+v", got)
		}
	}
	refused(t, s, "list_files", arguments{"sandbox_id": box, "path": "none"}, "error (not_found)")
	refused(t, s, "list_files", arguments{"sandbox_id": box, "path": "long"}, "error (invalid)", "if it is a file, use read_file")

	reader := h.at("/mcp/orkestr", "t-reader", handshake)
	ok(t, reader, "list_files", arguments{"sandbox_id": box})
	ok(t, reader, "read_file", arguments{"sandbox_id": box, "path": "src/é.txt"})
	refused(t, reader, "write_file", arguments{"sandbox_id": box, "path": "x", "content": ""}, "error (denied)", "sandboxes:write")
	stranger := h.at("/mcp/orkestr", "t-stranger", handshake)
	refused(t, stranger, "read_file", arguments{"sandbox_id": box, "path": "long"}, "error (not_found)", "there is: none")
	refused(t, stranger, "terminate_sandbox", arguments{"sandbox_id": box}, "error (not_found)")
}

// A note is no part of the JSON that programs read.
func TestNotesStandApartFromJSON(t *testing.T) {
	t.Parallel()
	s := open(t).at("/mcp/orkestr", "t-alice", handshake)
	res := call(t, s, "create_sandbox", arguments{"template": "python", "unheard_of": 1})
	var box orkestrBox
	if err := json.Unmarshal([]byte(text(t, res)), &box); err != nil || box.ID == "" {
		t.Errorf("got %+v, %v", box, err)
	}
	if len(res.Content) != 2 {
		t.Fatalf("got %d parts, want the object and a note", len(res.Content))
	}
	wantParts(t, res.Content[1].(*sdk.TextContent).Text, `note: the argument "unheard_of" is not known here`)
}
