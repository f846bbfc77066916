// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/fault"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

func listed(t *testing.T, s *sdk.ClientSession) *sdk.ListToolsResult {
	t.Helper()
	res, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func toolNames(res *sdk.ListToolsResult) []string {
	var out []string
	for _, tool := range res.Tools {
		out = append(out, tool.Name)
	}
	return out
}

func TestToolsList(t *testing.T) {
	t.Parallel()
	h := open(t)
	res := listed(t, h.alice())
	var others, state []*sdk.Tool
	for _, tool := range res.Tools {
		if slices.Contains(stateToolNames, tool.Name) {
			state = append(state, tool)
		} else {
			others = append(others, tool)
		}
	}
	if len(others) != 17 {
		t.Errorf("got %v beside those of the group state, want 17", toolNames(&sdk.ListToolsResult{Tools: others}))
	}
	if got := toolNames(&sdk.ListToolsResult{Tools: state}); !slices.Equal(got, stateToolNames) {
		t.Errorf("the group state: got %v, want %v", got, stateToolNames)
	}
	checkTools(t, others, "testdata/tools.json", 4300)
	checkTools(t, state, "testdata/tools-state.json", 2000)
	if data, err := json.Marshal(res.Tools); err != nil || len(data)/4 > 6000 {
		t.Errorf("all have about %d tokens, want at most 6000; %v", len(data)/4, err)
	}
	destroys := map[string]bool{"restart_sandbox": true, "reset_sandbox": true, "rollback_sandbox": true, "delete_snapshot": true}
	for _, tool := range state {
		if a := tool.Annotations; !a.ReadOnlyHint && *a.DestructiveHint != destroys[tool.Name] {
			t.Errorf("%s: it destroys: %v, want %v", tool.Name, *a.DestructiveHint, destroys[tool.Name])
		}
	}

	t.Run("IsTheSameInBothErasAndEachTime", func(t *testing.T) {
		modern := listed(t, h.session("t-alice", stateless, nil))
		if diff := cmp.Diff(toolNames(res), toolNames(modern)); diff != "" {
			t.Error("names (-handshake +stateless):\n" + diff)
		}
		if modern.CacheScope != "private" {
			t.Errorf("the list's cache scope: got %q, want private: it depends on the token", modern.CacheScope)
		}
	})

	t.Run("OfAReadersTokenHasOnlyWhatReads", func(t *testing.T) {
		got := toolNames(listed(t, h.session("t-reader", handshake, nil)))
		if want := []string{
			"diff_sandbox", "get_file_url", "get_sandbox_limits", "list_files", "list_sandboxes", "list_snapshots", "read_file", "read_process", "search_files",
		}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// checkTools holds what is true of every list of tools.
func checkTools(t *testing.T, tools []*sdk.Tool, golden string, budget int) {
	data, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("IsAsWritten", func(t *testing.T) {
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		if *updateGolden {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("tools/list differs from %s (-want +got; -update writes it anew):\n%s", golden, diff)
		}
	})

	t.Run("StaysWithinItsBudget", func(t *testing.T) {
		tokens := len(data) / 4 // about what tokenizers make of JSON
		t.Logf("%d tools, %d bytes, about %d tokens", len(tools), len(data), tokens)
		if tokens > budget {
			t.Errorf("about %d tokens, want at most %d", tokens, budget)
		}
		for _, tool := range tools {
			if n := len(tool.Description); n > 1200 {
				t.Errorf("%s: the description has %d bytes, want at most 1200", tool.Name, n)
			}
		}
	})

	t.Run("HasWhatDirectoriesAsk", func(t *testing.T) {
		for _, tool := range tools {
			if tool.Title == "" || tool.Description == "" || tool.Annotations == nil || len(tool.Name) > 64 {
				t.Errorf("%s lacks a title, a description or hints, or has too long a name", tool.Name)
				continue
			}
			if a := tool.Annotations; !a.ReadOnlyHint && a.DestructiveHint == nil {
				t.Errorf("%s says neither that it reads only nor whether it destroys", tool.Name)
			}
		}
	})

	t.Run("UsesOnlyWhatEveryModelTakes", func(t *testing.T) {
		for _, tool := range tools {
			data, err := json.Marshal(tool.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"$ref", "anyOf", "oneOf", "allOf", "\"default\"", "\"format\"", "\"type\":["} {
				if strings.Contains(string(data), word) {
					t.Errorf("the schema of %s has %s", tool.Name, word)
				}
			}
		}
	})
}

// stateToolNames are those of the group that changes a sandbox as a whole.
var stateToolNames = []string{
	"delete_snapshot", "diff_sandbox", "fork_sandbox", "get_sandbox_limits", "list_snapshots",
	"pause_sandbox", "reset_sandbox", "restart_sandbox", "resume_sandbox", "rollback_sandbox", "snapshot_sandbox",
}

// TestGroupsOfTools holds the lists of the groups that are off by default.
func TestGroupsOfTools(t *testing.T) {
	t.Parallel()
	for _, g := range []struct {
		group    string
		budget   int
		names    []string
		reading  []string // of a token that only reads
		destroys []string
	}{
		{toolset.GroupRuns, 800, []string{"run_sandbox"}, nil, []string{"run_sandbox"}},
		{
			toolset.GroupManage, 4800, // with headers of update_sandbox, grace_seconds of stop_sandbox, names and labels of run_in_shell, start_process, sudo of update_sandbox, on_expiry of update_sandbox, promote_sandbox, archive_sandbox, install_skills, create_template, those that administer images, and those that change files; the group is off by default
			[]string{
				"archive_sandbox", "build_image", "change_file", "create_context", "create_template", "delete_image", "end_context", "get_upload_url", "inspect_image", "install_skills", "open_terminal", "promote_sandbox", "prune_images",
				"replace_in_files", "resize_terminal", "run_in_shell", "start_process", "start_sandbox", "stop_sandbox", "update_sandbox",
			},
			[]string{"inspect_image"}, []string{"change_file", "delete_image", "end_context", "open_terminal", "promote_sandbox", "prune_images", "replace_in_files", "run_in_shell", "start_process", "stop_sandbox", "update_sandbox"},
		},
		{
			toolset.GroupInspect, 1650, // with list_templates
			[]string{
				"get_network_log", "get_sandbox", "list_activity", "list_contexts", "list_images", "list_ports", "list_processes", "list_runs",
				"list_secrets", "list_skills", "list_templates", "watch_files",
			},
			[]string{
				"get_network_log", "get_sandbox", "list_activity", "list_contexts", "list_images", "list_ports", "list_processes", "list_runs",
				"list_secrets", "list_skills", "list_templates", "watch_files",
			}, nil,
		},
		{toolset.GroupVolumes, 400, []string{"create_volume", "delete_volume", "list_volumes"}, []string{"list_volumes"}, []string{"delete_volume"}},
		{
			toolset.GroupGit, 2600, // thirteen verbs, each with as_user; the group is off by default
			[]string{
				"git_add", "git_branch", "git_checkout", "git_commit", "git_config", "git_init", "git_log", "git_pull", "git_push", "git_remote", "git_reset", "git_restore", "git_status",
			},
			nil, []string{"git_branch", "git_checkout", "git_config", "git_push", "git_remote", "git_reset", "git_restore"},
		},
	} {
		t.Run(g.group, func(t *testing.T) {
			off := toolNames(listed(t, open(t).alice()))
			h := openWith(t, g.group)
			more := func(token string) (added []*sdk.Tool) {
				for _, tool := range listed(t, h.session(token, handshake, nil)).Tools {
					if !slices.Contains(off, tool.Name) {
						added = append(added, tool)
					}
				}
				return added
			}
			added := more("t-alice")
			if got := toolNames(&sdk.ListToolsResult{Tools: added}); !slices.Equal(got, g.names) {
				t.Errorf("got %v, want %v", got, g.names)
			}
			if got := toolNames(&sdk.ListToolsResult{Tools: more("t-reader")}); !slices.Equal(got, g.reading) {
				t.Errorf("of a reader's token: got %v, want %v", got, g.reading)
			}
			checkTools(t, added, "testdata/tools-"+g.group+".json", g.budget)
			for _, tool := range added {
				if a := tool.Annotations; !a.ReadOnlyHint && *a.DestructiveHint != slices.Contains(g.destroys, tool.Name) {
					t.Errorf("%s: it destroys: %v", tool.Name, *a.DestructiveHint)
				}
			}
		})
	}
}

func TestGroupsAreSwitchedOnAndOff(t *testing.T) {
	t.Parallel()
	h := openWith(t, "-"+toolset.GroupProcess, "-"+toolset.GroupRuns, "-"+toolset.GroupPorts, "-"+toolset.GroupCode, toolset.GroupState, "-"+toolset.GroupState, toolset.GroupRuns, "-"+toolset.GroupRuns)
	got := toolNames(listed(t, h.alice()))
	want := []string{
		"create_sandbox", "delete_sandbox", "edit_file", "get_file_url", "git_clone", "list_files", "list_sandboxes",
		"read_file", "request_network", "run_command", "search_files", "write_file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
	// Without the tools for processes a command is waited for, however long it takes.
	s := h.alice()
	if got := ok(t, s, "run_command", arguments{"command": "sleep 0.3; echo end", "wait_seconds": 0.1}); !strings.HasPrefix(got, "exit 0 after ") {
		t.Errorf("got %q", got)
	}
	h.wrong(t, "run_command", arguments{"command": "true", "background": true}, "argument background is not possible here")
}

func TestATokensScopesNarrowTheTools(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			h := open(t)
			s := h.session("t-narrow", version, nil)
			want := []string{"get_file_url", "list_files", "run_code", "search_files"}
			if got := toolNames(listed(t, s)); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			res := call(t, s, "run_command", arguments{"command": "ls"})
			wantParts(t, text(t, res), "error (denied)", "run_command needs the scope tools:core", `"narrow"`, "next: ")
			if !res.IsError {
				t.Error("it was done")
			}
			if got := len(toolNames(listed(t, h.session("t-alice", version, nil)))); got != 28 {
				t.Errorf("another token sees %d tools, want 28", got)
			}
		})
	}
}

func TestAnUnknownGroupIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, err := mcp.New(mcp.Options{Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{})), Caller: guard.Caller, Groups: []string{"no-such"}})
	if e := fault.As(err); e.Code != fault.Invalid || !strings.Contains(e.Message, "no-such") || !strings.Contains(e.Remedy, toolset.GroupState) {
		t.Errorf("got %v (%s), want Invalid that names it and what there is", err, e.Remedy)
	}
}

func TestInstructionsStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	for _, h := range []*house{open(t), openWith(t, toolset.Groups()...)} {
		got := h.alice().InitializeResult().Instructions
		if len(got) == 0 || len(got) > 1500 {
			t.Errorf("the instructions have %d bytes, want 1 to 1500 before the versions of an image", len(got))
		}
	}
}
