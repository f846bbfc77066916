// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"slices"
	"strings"
	"testing"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// wrong calls a tool that has to refuse, and gives what it says.
func (h *house) wrong(t testing.TB, tool string, args arguments, parts ...string) {
	t.Helper()
	res := call(t, h.alice(), tool, args)
	got := text(t, res)
	if !res.IsError {
		t.Errorf("%s %v was done: %s", tool, args, got)
	}
	wantParts(t, got, parts...)
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	res := call(t, s, "pause_sandbox", arguments{"identifier": "box"})
	if got := structured[handle](t, res); got.State != "paused" || got.Name != "box" {
		t.Errorf("got %+v", got)
	}
	wantParts(t, text(t, res), "paused sandbox box", "resume_sandbox")
	h.wrong(t, "run_command", arguments{"sandbox": "box", "command": "true"}, "error (state)", `call resume_sandbox with {"sandbox": "box"}`)
	wantParts(t, ok(t, s, "list_sandboxes", nil), "box · paused (user)")
	if got := ok(t, s, "resume_sandbox", arguments{"sandbox": "box"}); verdict(got) != "sandbox box is running" {
		t.Errorf("got %q", got)
	}
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "echo up"}), "up")
	h.wrong(t, "pause_sandbox", nil, "does not exist yet")
}

func TestSnapshotAndRollback(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState)
	s := h.alice()
	run := func(command string) string {
		t.Helper()
		return ok(t, s, "run_command", arguments{"sandbox": "box", "command": command})
	}
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	run("echo one > a; echo two > b")
	type kept struct {
		ID   string
		Name string
	}
	res := call(t, s, "snapshot_sandbox", arguments{"sandbox": "box", "name": "before"})
	first := structured[kept](t, res)
	if !sandbox.ValidID(first.ID) || first.Name != "before" {
		t.Errorf("got %+v", first)
	}
	wantParts(t, text(t, res), "kept sandbox box as snapshot before", `rollback_sandbox with {"sandbox": "box", "to": "before"}`)
	h.wrong(t, "snapshot_sandbox", arguments{"sandbox": "box", "name": "before"}, "error (exists)", "replace")
	h.wrong(t, "snapshot_sandbox", arguments{"sandbox": "box", "name": ""}, "argument name is empty")
	h.wrong(t, "snapshot_sandbox", arguments{"sandbox": "box", "name": "a/b"}, "error (invalid)", "argument name")

	run("echo changed > a; rm b; echo odd > \"$(printf 'c\\nnothing changed')\"")
	got := ok(t, s, "diff_sandbox", arguments{"sandbox": "box", "from": "before"})
	wantParts(t, got, "3 changes in sandbox box between before and now", "--- changes ---\n", "modified ", "/a (8 bytes)\n", "deleted ", `c\nnothing changed" (4 bytes)`)
	if strings.Contains(got, "\nnothing changed") {
		t.Errorf("a file's name made a line of its own: %s", got)
	}
	wantParts(t, ok(t, s, "diff_sandbox", arguments{"sandbox": "box", "from": "before", "to": "before"}), "nothing changed in sandbox box between before and before")
	wantParts(t, ok(t, s, "diff_sandbox", arguments{"sandbox": "box", "from": "before", "limit": 1}), "3 changes", "note: only 1 of them")

	wantParts(t, ok(t, s, "rollback_sandbox", arguments{"sandbox": "box", "to": "before"}), "rolled sandbox box back to before", "running")
	wantParts(t, run("cat a b"), "one\ntwo")
	h.wrong(t, "rollback_sandbox", arguments{"sandbox": "box", "to": "never"}, "error (not_found)", `"never"`)
	h.wrong(t, "rollback_sandbox", arguments{"sandbox": "box"}, "argument to is missing")

	second := structured[kept](t, call(t, s, "snapshot_sandbox", arguments{"sandbox": "box"}))
	type listing struct {
		Snapshots  []kept
		Total      int
		NextCursor string `json:"next_cursor"`
	}
	res = call(t, s, "list_snapshots", arguments{"sandbox": "box", "limit": 1})
	page := structured[listing](t, res)
	if page.Total != 2 || len(page.Snapshots) != 1 || page.Snapshots[0].ID != second.ID || page.NextCursor == "" {
		t.Fatalf("got %+v", page)
	}
	wantParts(t, text(t, res), "1 of 2 snapshots of sandbox box", "note: there are more")
	rest := structured[listing](t, call(t, h.session("t-reader", handshake, nil), "list_snapshots", arguments{"sandbox": "box", "cursor": page.NextCursor}))
	if len(rest.Snapshots) != 1 || rest.Snapshots[0] != first {
		t.Errorf("second page: got %+v", rest)
	}

	if got := ok(t, s, "delete_snapshot", arguments{"sandbox": "box", "name": "before"}); got != "deleted snapshot before" {
		t.Errorf("got %q", got)
	}
	ok(t, s, "delete_sandbox", arguments{"sandbox": "box"})
	h.wrong(t, "delete_snapshot", arguments{"snapshot": second.ID}, "error (not_found)") // it went with its sandbox
	h.wrong(t, "snapshot_sandbox", arguments{"sandbox": "box"}, "error (not_found)", "create it with create_sandbox")
}

func TestASnapshotIsDeletedByItsIdWithoutItsSandbox(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	kept := structured[struct{ ID string }](t, call(t, s, "snapshot_sandbox", arguments{"sandbox": "box", "name": "stays"}))
	ok(t, s, "delete_sandbox", arguments{"sandbox": "box"})
	ok(t, s, "delete_snapshot", arguments{"snapshot_id": kept.ID})
	if _, err := h.engine.Snapshot(t.Context(), callers["t-alice"], "", kept.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("after the delete: %v", err)
	}
}

func TestPromoteSandbox(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState, toolset.GroupManage)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	ok(t, s, "run_command", arguments{"sandbox": "box", "command": "echo parent > a"})
	ok(t, s, "fork_sandbox", arguments{"sandbox": "box", "name": "copy"})
	ok(t, s, "run_command", arguments{"sandbox": "copy", "command": "echo copy > a"})
	wantParts(t, ok(t, s, "promote_sandbox", arguments{"sandbox": "copy", "snapshot": "before"}), "sandbox box is ", "rollback_sandbox brings that back")
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "cat a"}), "copy")
	ok(t, s, "rollback_sandbox", arguments{"sandbox": "box", "to": "before"})
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "cat a"}), "parent")
	h.wrong(t, "promote_sandbox", arguments{"sandbox": "box"}, "error (not_found)")
	h.wrong(t, "promote_sandbox", arguments{}, "argument sandbox")
}

func TestForkSandbox(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	ok(t, s, "run_command", arguments{"sandbox": "box", "command": "echo one > a"})
	type forks struct{ Sandboxes []handle }
	res := call(t, s, "fork_sandbox", arguments{"sandbox": "box", "count": 2})
	got := structured[forks](t, res)
	if len(got.Sandboxes) != 2 || got.Sandboxes[0].ID == got.Sandboxes[1].ID || got.Sandboxes[0].State != "running" || got.Sandboxes[0].Name != "" {
		t.Fatalf("got %+v", got)
	}
	wantParts(t, text(t, res), "forked sandbox box: 2 copies, running", got.Sandboxes[0].ID+", "+got.Sandboxes[1].ID)
	for _, f := range got.Sandboxes {
		wantParts(t, ok(t, s, "run_command", arguments{"sandbox": f.ID, "command": "cat a; echo mine > a"}), "one")
	}
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "cat a"}), "one")
	named := structured[forks](t, call(t, s, "fork_sandbox", arguments{"sandbox": "box", "name": "copy"}))
	if len(named.Sandboxes) != 1 || named.Sandboxes[0].Name != "copy" {
		t.Errorf("got %+v", named)
	}
	h.wrong(t, "fork_sandbox", arguments{"sandbox": "box", "name": "copy"}, "error (exists)")
	h.wrong(t, "fork_sandbox", arguments{"sandbox": "box", "name": "two", "count": 2}, "argument name cannot be that of 2 copies")
	// What is wrong is told before the default sandbox is missed, and keeps it from being copied.
	h.wrong(t, "fork_sandbox", arguments{"name": "two", "count": 2}, "argument name cannot be that of 2 copies")
	ok(t, s, "run_command", arguments{"command": "true"})
	h.wrong(t, "fork_sandbox", arguments{"name": "two", "count": 2}, "argument name cannot be that of 2 copies")
	h.wrong(t, "fork_sandbox", arguments{"sandbox": "box", "count": 101}, "argument count 101 is outside 1 to 100")
}

func TestRestartAndResetSandbox(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState)
	s := h.alice()
	made := structured[handle](t, call(t, s, "create_sandbox", arguments{"name": "box"}))
	ok(t, s, "run_command", arguments{"sandbox": "box", "command": "echo one > a"})
	wantParts(t, ok(t, s, "restart_sandbox", arguments{"identifier": "box"}), "restarted sandbox box: its processes have ended, its files are as they were, and it is running")
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": made.ID, "command": "cat a"}), "one")
	wantParts(t, ok(t, s, "reset_sandbox", arguments{"identifier": "box"}), "reset sandbox box: its disk is empty, and it is running")
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": made.ID, "command": "ls; echo end"}), "end")
	h.wrong(t, "read_file", arguments{"sandbox": "box", "path": "a"}, "error (not_found)")
	h.wrong(t, "restart_sandbox", nil, "argument sandbox is missing")
	h.wrong(t, "reset_sandbox", nil, "argument sandbox is missing")
}

func TestGetSandboxLimits(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState)
	s := h.alice()
	ok(t, s, "create_sandbox", nil)
	ok(t, s, "create_sandbox", arguments{"memory_mb": 1000, "name": "down"})
	ok(t, s, "create_sandbox", arguments{"memory_mb": 100, "cpus": 0.5})
	if _, err := h.engine.Stop(t.Context(), callers["t-alice"], "down"); err != nil {
		t.Fatal(err)
	}
	ok(t, h.session("t-stranger", handshake, nil), "create_sandbox", nil)
	res := call(t, s, "get_sandbox_limits", nil)
	got := structured[struct {
		Default, Most struct {
			MemoryMB int `json:"memory_mb"`
		}
		InUse struct {
			CPUs     float64
			MemoryMB int `json:"memory_mb"`
		} `json:"in_use"`
		Sandboxes map[string]int
		Networks  []string
		Budget    *float64
	}](t, res)
	if got.Default.MemoryMB != sandbox.DefaultLimits().MemoryMB || got.Most.MemoryMB != sandbox.MaxMemoryMB || got.Sandboxes["running"] != 2 || got.Sandboxes["stopped"] != 1 ||
		got.InUse.MemoryMB != 612 || got.InUse.CPUs != 1.5 || !slices.Equal(got.Networks, []string{"off"}) || got.Budget != nil {
		t.Errorf("got %+v", got)
	}
	wantParts(t, text(t, res), "a sandbox gets 1 CPU, 512 MiB memory", "your sandboxes: 3, of which 2 run, with 1.5 CPU, 612 MiB memory", "network: off, for every sandbox (the memory runtime is a fake: it has no network of its own)", "no budget")
}
