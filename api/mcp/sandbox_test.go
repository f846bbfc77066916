// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
)

// structured reads a result's structured content.
func structured[T any](t testing.TB, res *sdk.CallToolResult) T {
	t.Helper()
	var v T
	if res.IsError {
		t.Fatalf("an error: %s", text(t, res))
	}
	data, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

type handle struct {
	Created   bool
	ID        string
	Name      string
	State     string
	Workdir   string
	Network   string
	CPUs      float64
	MemoryMB  int    `json:"memory_mb"`
	ExpiresAt string `json:"expires_at"`
}

func TestCreateSandbox(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupInspect)
	s := h.alice()

	t.Run("ASizeIsCPUAndMemory", func(t *testing.T) {
		if got := structured[handle](t, call(t, s, "create_sandbox", arguments{"size": "medium"})); got.MemoryMB != 4096 {
			t.Errorf("got %d MiB, want 4096", got.MemoryMB)
		}
		h.wrong(t, "create_sandbox", arguments{"size": "huge"}, `argument size "huge" is not valid; use small, medium, large`)
		if got := structured[handle](t, call(t, s, "create_sandbox", arguments{"size": "medium", "memory_mb": 512})); got.MemoryMB != 512 || got.CPUs != 2 {
			t.Errorf("got %v CPU and %d MiB, want 2 and 512", got.CPUs, got.MemoryMB)
		}
	})

	t.Run("GivesAHandleThatIsCompleteByItself", func(t *testing.T) {
		res := call(t, s, "create_sandbox", arguments{"name": "one", "memory_mb": "256", "ttl_minutes": 60, "env": arguments{"A": "b"}})
		got := structured[handle](t, res)
		checktest.Equal(t, "Created", got.Created, true)
		checktest.Some(t, "ID", got.ID)
		checktest.Equal(t, "Name", got.Name, "one")
		checktest.Equal(t, "State", got.State, "running")
		checktest.Equal(t, "Workdir", got.Workdir, "/workspace")
		checktest.Equal(t, "MemoryMB", got.MemoryMB, 256)
		checktest.Equal(t, "Network", got.Network, "off")
		checktest.Some(t, "ExpiresAt", got.ExpiresAt)
		wantParts(t, text(t, res), "created sandbox one\n", "id "+got.ID, "256 MiB memory", "deleted at "+got.ExpiresAt)
		wantParts(t, ok(t, s, "run_command", arguments{"sandbox": got.ID, "command": "echo $A"}), "\nb")
	})

	t.Run("ItsUserIsCalledAsIsAskedFor", func(t *testing.T) {
		account := arguments{"name": "coder", "home": "/home/coder", "workdir": "/home/coder/work"}
		res := call(t, s, "create_sandbox", arguments{"name": "owned", "account": account})
		if got := structured[handle](t, res); got.Workdir != "/home/coder/work" {
			t.Errorf("it works in %q, want /home/coder/work", got.Workdir)
		}
		got, err := h.engine.Get(t.Context(), callers["t-alice"], "owned")
		if err != nil || got.Account.Name != "coder" || got.Account.Home != "/home/coder" {
			t.Errorf("got the account %+v, %v", got.Account, err)
		}
		wantParts(t, ok(t, s, "get_sandbox", arguments{"sandbox": "owned"}), "its user is coder, at home in /home/coder; commands run as coder")
		h.wrong(t, "create_sandbox", arguments{"account": arguments{"name": "root"}}, "error (invalid)", "argument account.name")
		h.wrong(t, "create_sandbox", arguments{"account": arguments{"uid": "0"}}, `argument account has "uid"; it may have name, home, workdir and user`)
		h.wrong(t, "create_sandbox", arguments{"account": "coder"}, "argument account is neither an object of strings")
	})

	t.Run("HeadersOfHostsNeedANetwork", func(t *testing.T) {
		headers := arguments{"api.example.org/X-Team": "blue"}
		h.wrong(t, "create_sandbox", arguments{"headers": headers}, "argument headers go with network restricted or open")
		h.wrong(t, "create_sandbox", arguments{"network": "off", "headers": headers}, "argument headers means nothing in mode off")
	})

	t.Run("WithAKnownNameGivesThatOneAsItIs", func(t *testing.T) {
		first := structured[handle](t, call(t, s, "create_sandbox", arguments{"name": "two"}))
		res := call(t, s, "create_sandbox", arguments{"name": "two", "memory_mb": 2048})
		again := structured[handle](t, res)
		if again.Created || again.ID != first.ID || again.MemoryMB != first.MemoryMB {
			t.Errorf("got %+v, want %+v", again, first)
		}
		wantParts(t, text(t, res), "sandbox two exists and is running", "note: it existed already and was left as it is")
	})

	t.Run("WithoutANameMakesANewOneEachTime", func(t *testing.T) {
		a := structured[handle](t, call(t, s, "create_sandbox", nil))
		b := structured[handle](t, call(t, s, "create_sandbox", arguments{}))
		if !a.Created || !b.Created || a.ID == b.ID || a.Name != "" {
			t.Errorf("got %+v and %+v", a, b)
		}
	})
}

func TestListSandboxes(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	type listing struct {
		Sandboxes  []handle
		Total      int
		NextCursor string `json:"next_cursor"`
	}
	if got := structured[listing](t, call(t, s, "list_sandboxes", nil)); got.Total != 0 || got.Sandboxes == nil {
		t.Errorf("of none: got %+v, want an empty list", got)
	}
	for _, n := range []string{"a", "b", "c"} {
		ok(t, s, "create_sandbox", arguments{"name": n})
	}
	ok(t, h.session("t-stranger", handshake, nil), "create_sandbox", arguments{"name": "foreign"})

	res := call(t, s, "list_sandboxes", arguments{"limit": 2})
	page := structured[listing](t, res)
	checktest.Equal(t, "first page, Total", page.Total, 3)
	checktest.Len(t, "first page, Sandboxes", page.Sandboxes, 2)
	checktest.Equal(t, "first page, Sandboxes[0].Name", page.Sandboxes[0].Name, "c")
	checktest.Some(t, "first page, NextCursor", page.NextCursor)
	wantParts(t, text(t, res), "2 of 3 sandboxes\nc · running", "note: there are more; call again with cursor ")
	rest := structured[listing](t, call(t, s, "list_sandboxes", arguments{"limit": 2, "cursor": page.NextCursor}))
	if len(rest.Sandboxes) != 1 || rest.Sandboxes[0].Name != "a" || rest.NextCursor != "" {
		t.Errorf("second page: got %+v", rest)
	}
	if _, _, err := h.engine.Create(t.Context(), callers["t-alice"], engine.CreateRequest{Key: "labelled", Metadata: map[string]string{"team": "x=y"}}); err != nil {
		t.Fatal(err)
	}
	if got := structured[listing](t, call(t, s, "list_sandboxes", arguments{"labels": []string{"team=x=y"}})); got.Total != 1 || got.Sandboxes[0].Name != "labelled" {
		t.Errorf("by label: got %+v", got)
	}
	for _, labels := range []any{arguments{"team": "x=y"}, "team=x=y"} { // as the schema has it, and as text
		if got := structured[listing](t, call(t, s, "list_sandboxes", arguments{"labels": labels})); got.Total != 1 {
			t.Errorf("by labels %v: got %+v", labels, got)
		}
	}
	h.wrong(t, "list_sandboxes", arguments{"labels": "team"}, `argument labels "team" is not NAME=VALUE`)
	if res := call(t, s, "list_sandboxes", arguments{"labels": []string{"team"}}); !res.IsError {
		t.Error("a label without a value was taken")
	}
	if got := structured[listing](t, call(t, s, "list_sandboxes", arguments{"state": "stopped"})); got.Total != 0 {
		t.Errorf("stopped ones: got %+v", got)
	}
}

// TestListSandboxesByWhatTheyHave: bounds and sorts are those of REST.
func TestListSandboxesByWhatTheyHave(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	for n, mb := range map[string]int{"small": 256, "middle": 512, "large": 1024} {
		ok(t, s, "create_sandbox", arguments{"name": n, "memory_mb": mb, "ttl_minutes": mb})
	}
	names := func(args arguments) string {
		t.Helper()
		var out []string
		for _, one := range structured[struct{ Sandboxes []handle }](t, call(t, s, "list_sandboxes", args)).Sandboxes {
			out = append(out, one.Name)
		}
		return strings.Join(out, " ")
	}
	hour := time.Now().Add(8 * time.Hour).UTC().Format(time.RFC3339)
	for _, c := range []struct {
		args arguments
		want string
	}{
		{arguments{"sort_by": "memory_mb"}, "large middle small"},
		{arguments{"sort_by": "memory_mb", "ascending": true}, "small middle large"},
		{arguments{"sort_by": "expires_at", "ascending": true}, "small middle large"},
		{arguments{"sort_by": "memory_mb", "where": arguments{"memory_mb_from": 512}}, "large middle"},
		{arguments{"sort_by": "memory_mb", "where": arguments{"memory_mb_from": "257", "memory_mb_to": "1023"}}, "middle"},
		{arguments{"where": arguments{"expires_to": hour}}, "small"},
		{arguments{"where": arguments{"created_from": hour}}, ""},
		{arguments{"where": arguments{"activity_to": hour, "cpu_cores_from": 64}}, ""},
	} {
		if got := names(c.args); got != c.want {
			t.Errorf("%v: got %q, want %q", c.args, got, c.want)
		}
	}
	page := structured[struct {
		NextCursor string `json:"next_cursor"`
	}](t, call(t, s, "list_sandboxes", arguments{"sort_by": "memory_mb", "limit": 1}))
	if got := names(arguments{"sort_by": "memory_mb", "limit": 1, "cursor": page.NextCursor}); got != "middle" {
		t.Errorf("the second page has %q, want middle", got)
	}
	h.wrong(t, "list_sandboxes", arguments{"sort_by": "name"}, "argument sort_by", "not one of created_at")
	h.wrong(t, "list_sandboxes", arguments{"where": arguments{"size_from": 1}}, `argument where has "size_from"; it may have activity_from`)
	h.wrong(t, "list_sandboxes", arguments{"where": arguments{"created_from": "yesterday"}}, `argument where.created_from "yesterday" is not a time`)
	h.wrong(t, "list_sandboxes", arguments{"where": arguments{"memory_mb_to": "much"}}, `argument where.memory_mb_to "much" is not a number`)
	h.wrong(t, "list_sandboxes", arguments{"where": arguments{"memory_mb_to": "NaN"}}, "have to be numbers that are not below 0")
	h.wrong(t, "list_sandboxes", arguments{"where": arguments{"memory_mb_from": 2, "memory_mb_to": 1}}, "is below memory_mb_from")
}

func TestDeleteSandbox(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	ok(t, s, "create_sandbox", arguments{"name": "other"})
	if got := ok(t, s, "delete_sandbox", arguments{"identifier": "box"}); got != "deleted sandbox box with all its files" {
		t.Errorf("got %q", got)
	}
	if _, err := h.engine.Get(t.Context(), callers["t-alice"], "box"); !fault.Is(err, fault.NotFound) {
		t.Errorf("after the delete: %v", err)
	}
	wantParts(t, ok(t, s, "delete_sandbox", arguments{"sandbox": "box"}), `nothing to delete: there is no sandbox "box"`, "there are: other")
}

func TestRunSandbox(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupRuns)
	s := h.alice()
	type element struct {
		Index    int
		Status   string
		ExitCode *int `json:"exit_code"`
		Stdout   string
		Stderr   string
		Error    string
	}
	type run struct {
		Tool       string
		RunID      string `json:"run_id"`
		Identifier string
		Final      struct {
			State    string
			Error    string
			Commands []element
		}
	}
	commands := func(list ...any) []any { return list }

	t.Run("CreatesByIdentifierAndRunsInOrder", func(t *testing.T) {
		res := call(t, s, "run_sandbox", arguments{
			"identifier": "chat-1",
			"commands": commands(
				arguments{"shell": "echo $A $B > file; pwd | sed 's,.*/,,'"},
				arguments{"argv": []string{"cat", "file"}, "shell": nil},
				arguments{"shell": "exit 4", "allow_failure": true},
				"echo bare",
			),
			"options": arguments{"default_env": []string{"A=1"}, "ttl_seconds": 600},
		})
		got := structured[run](t, res)
		checktest.Equal(t, "Tool", got.Tool, "run_sandbox")
		checktest.Equal(t, "Identifier", got.Identifier, "chat-1")
		checktest.Equal(t, "length of RunID", len(got.RunID), 36)
		checktest.Equal(t, "Final.State", got.Final.State, "completed")
		var states []string
		for _, c := range got.Final.Commands {
			states = append(states, c.Status)
		}
		if s := strings.Join(states, " "); s != "completed completed failed completed" {
			t.Errorf("statuses: got %q", s)
		}
		if c := got.Final.Commands[1]; c.Stdout != "1\n" {
			t.Errorf("command 1: got %+v", c)
		}
		wantParts(t, text(t, res), "run completed: 4 of 4 commands ran", "[2] failed: exit 4", "--- [1] stdout (2 bytes) ---\n1\n", "--- [3] stdout (5 bytes) ---\nbare")
		if strings.Contains(text(t, res), "A=1") {
			t.Error("the answer tells variables")
		}
	})

	t.Run("SlidesTheEndOfItsSandbox", func(t *testing.T) {
		end := func(options arguments) time.Duration {
			ok(t, s, "run_sandbox", arguments{"identifier": "chat-2", "commands": commands("true"), "options": options})
			box, err := h.engine.Get(t.Context(), callers["t-alice"], "chat-2")
			if err != nil {
				t.Fatal(err)
			}
			return box.TTL
		}
		if got := end(nil); got != time.Hour {
			t.Errorf("by default: ends in %v, want an hour", got)
		}
		if got := end(arguments{"ttl_seconds": 7200}); got != 2*time.Hour {
			t.Errorf("with 7200 s: ends in %v, want two hours", got)
		}
		if got := end(arguments{"ttl_seconds": 600}); got != 10*time.Minute {
			t.Errorf("with 600 s: ends in %v, want ten minutes", got)
		}
		if got := end(arguments{"ttl_seconds": 1 << 40}); got != 7*24*time.Hour {
			t.Errorf("with very many: ends in %v, want the bound of a week", got)
		}
	})

	t.Run("GivesNoEndToASandboxThatHasNone", func(t *testing.T) {
		ok(t, s, "create_sandbox", arguments{"name": "kept"})
		ok(t, s, "run_sandbox", arguments{"identifier": "kept", "commands": commands("true")})
		if box, err := h.engine.Get(t.Context(), callers["t-alice"], "kept"); err != nil || box.TTL != 0 {
			t.Errorf("it ends after %v (%v), want never", box.TTL, err)
		}
	})

	t.Run("EndsAtTheFirstFailure", func(t *testing.T) {
		res := call(t, s, "run_sandbox", arguments{"identifier": "chat-3", "commands": commands("false", "echo never")})
		got := structured[run](t, res)
		checktest.Equal(t, "Final.State", got.Final.State, "failed")
		checktest.Equal(t, "Final.Commands[1].Status", got.Final.Commands[1].Status, "queued")
		checktest.Absent(t, "Final.Commands[1].ExitCode", got.Final.Commands[1].ExitCode)
		if !strings.HasPrefix(got.Final.Error, "command 0: exit 1") {
			t.Errorf("Final.Error: got %q", got.Final.Error)
		}
		wantParts(t, text(t, res), "run failed: 1 of 2 commands ran", "[1] queued", "cause: command 0: exit 1")
	})

	t.Run("GoesOnWhereItIsTold", func(t *testing.T) {
		got := structured[run](t, call(t, s, "run_sandbox", arguments{
			"identifier": "chat-3", "commands": commands(arguments{"shell": "sleep 600", "timeout_ms": 200}, arguments{"shell": "true", "cwd": "/nowhere"}, "echo after"),
			"options": arguments{"continue_on_error": true, "lock_sandbox": true},
		}))
		f := got.Final
		checktest.Equal(t, "State", f.State, "failed")
		checktest.Equal(t, "Commands[0].Status", f.Commands[0].Status, "timed_out")
		checktest.Equal(t, "Commands[1].Status", f.Commands[1].Status, "failed")
		checktest.Some(t, "Commands[1].Error", f.Commands[1].Error)
		checktest.Equal(t, "Commands[2].Stdout", f.Commands[2].Stdout, "after\n")
	})

	t.Run("AnswersAtOnceWhereItIsTold", func(t *testing.T) {
		res := call(t, s, "run_sandbox", arguments{"identifier": "chat-4", "commands": commands("sleep 1", "echo end"), "options": arguments{"await_completion": false}})
		wantParts(t, text(t, res), "run queued: 2 commands")
		first := structured[map[string]any](t, res)
		if _, there := first["final"]; there {
			t.Errorf("it did not wait, and has a final: %v", first)
		}
		id := first["run_id"].(string)
		res = call(t, s, "run_sandbox", arguments{"identifier": "chat-4", "run_id": id, "options": arguments{"await_timeout_ms": 5}})
		wantParts(t, text(t, res), "it goes on; 0 of 2 commands have ended", `next: call run_sandbox with {"identifier": "chat-4", "run_id": "`+id+`"}`)
		if final, there := structured[map[string]any](t, res)["final"]; !there || final != nil {
			t.Errorf("it waited in vain, and has the final %v", final)
		}
		got := structured[run](t, call(t, s, "run_sandbox", arguments{"identifier": "chat-4", "run_id": id}))
		if got.RunID != id || got.Final.State != "completed" || got.Final.Commands[1].Stdout != "end\n" {
			t.Errorf("at the end: %+v", got)
		}
	})
}
