// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine/snapshot"
)

func TestVolumes(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupVolumes, toolset.GroupInspect, toolset.GroupManage)
	s := h.alice()
	type volume struct {
		ID, Name  string
		UsedBytes *int64   `json:"used_bytes"`
		MountedBy []string `json:"mounted_by"`
	}
	type mounted struct{ Volumes []string }
	res := call(t, s, "create_volume", arguments{"name": "data"})
	if got := structured[volume](t, res); got.Name != "data" || len(got.ID) != 16 || got.MountedBy == nil {
		t.Errorf("got %+v", got)
	}
	wantParts(t, text(t, res), "created volume data", `create_sandbox with {"volumes": "data:/workspace/data"} mounts it`)
	h.wrong(t, "create_volume", arguments{"name": "data"}, "error (exists)", `"data"`)
	h.wrong(t, "create_volume", arguments{"name": "small", "size_mb": 100}, "error (unsupported)", "limits no volume") // the fake's word
	h.wrong(t, "create_volume", arguments{"name": "long", "lifetime_hours": 90000}, "error (invalid)", "lifetime_hours")
	short := call(t, s, "create_volume", arguments{"name": "short", "lifetime_hours": 1.5})
	if got := structured[struct {
		CreatedAt time.Time `json:"created_at"`
		ExpiresAt time.Time `json:"expires_at"`
	}](t, short); got.ExpiresAt.Sub(got.CreatedAt) != 90*time.Minute {
		t.Errorf("got %+v", got)
	}
	wantParts(t, text(t, short), "expires 20")
	ok(t, s, "delete_volume", arguments{"volume": "short"})
	h.wrong(t, "create_volume", arguments{"name": "a/b"}, "error (invalid)", "argument name")

	t.Run("AreMounted", func(t *testing.T) {
		one := call(t, s, "create_sandbox", arguments{"name": "one", "volumes": "data:/workspace/data, data/part:/workspace/part:ro"})
		want := []string{"data:/workspace/data", "data/part:/workspace/part:ro"}
		if got := structured[mounted](t, one).Volumes; !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		wantParts(t, text(t, one), "volumes data:/workspace/data, data/part:/workspace/part:ro")
		ok(t, s, "create_sandbox", arguments{"name": "two", "mounts": []any{arguments{"volume": "data", "path": "/workspace/shared"}}})
		ok(t, s, "run_command", arguments{"sandbox": "one", "command": "echo hello > data/file"})
		wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "two", "command": "cat shared/file"}), "hello")
		wantParts(t, ok(t, s, "create_sandbox", arguments{"name": "one", "volumes": "data:/workspace/other"}), "note: it existed already", "volumes", "update_sandbox")
		if got := structured[mounted](t, call(t, s, "get_sandbox", arguments{"sandbox": "one"})).Volumes; !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})

	t.Run("AreListed", func(t *testing.T) {
		res := call(t, h.session("t-reader", handshake, nil), "list_volumes", nil)
		got := structured[struct{ Volumes []volume }](t, res).Volumes
		slices.Sort(got[0].MountedBy)
		if len(got) != 1 || !slices.Equal(got[0].MountedBy, []string{"one", "two"}) || got[0].UsedBytes == nil || *got[0].UsedBytes < 6 {
			t.Errorf("got %+v", got)
		}
		wantParts(t, text(t, res), "1 volume\n", "data · id ", "mounted by ")
		if got := structured[struct{ Volumes []volume }](t, call(t, h.session("t-stranger", handshake, nil), "list_volumes", nil)); len(got.Volumes) != 0 {
			t.Errorf("a stranger is told of %+v", got)
		}
	})

	t.Run("ChangeWhileTheSandboxIsStopped", func(t *testing.T) {
		h.wrong(t, "update_sandbox", arguments{"sandbox": "two", "volumes": ""}, "error (state)", "only while the sandbox is stopped", `next: call stop_sandbox with {"sandbox": "two"}, this again, and start_sandbox`)
		ok(t, s, "stop_sandbox", arguments{"sandbox": "two"})
		if got := structured[mounted](t, call(t, s, "update_sandbox", arguments{"sandbox": "two", "volumes": ""})).Volumes; len(got) != 0 {
			t.Errorf("got %q", got)
		}
	})

	t.Run("AreDeletedWhereNoneMountsThem", func(t *testing.T) {
		h.wrong(t, "delete_volume", arguments{"volume": "data"}, "error (conflict)", "mounted by one")
		ok(t, s, "delete_sandbox", arguments{"sandbox": "one"})
		if got := ok(t, s, "delete_volume", arguments{"name": "data"}); got != "deleted volume data with all that was in it" {
			t.Errorf("got %q", got)
		}
		h.wrong(t, "delete_volume", arguments{"volume": "data"}, "error (not_found)", `there is no volume "data"`)
		h.wrong(t, "create_sandbox", arguments{"volumes": "data:/workspace/data"}, "error (not_found)", `there is no volume "data"`)
	})

	t.Run("WhatIsWrittenWrongIsRefused", func(t *testing.T) {
		for _, v := range []any{"data", "data:", ":/x", "data:x", "/sub:/x", []any{1}, []any{arguments{"volume": "data"}}, []any{arguments{"path": "/x"}}, "data:ro"} {
			h.wrong(t, "create_sandbox", arguments{"name": "bad", "volumes": v}, "argument volumes", "is not of the form NAME:/path")
		}
		ok(t, s, "create_volume", arguments{"name": "v"})
		h.wrong(t, "create_sandbox", arguments{"volumes": "v:/proc"}, "error (invalid)", "argument volumes")
		many := ""
		for i := range 17 {
			many += fmt.Sprintf("v:/mnt/%d,", i)
		}
		h.wrong(t, "create_sandbox", arguments{"volumes": many}, "argument volumes has 17 volumes")
	})
}

func TestASandboxBeginsWithASnapshotsFiles(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "first"})
	ok(t, s, "run_command", arguments{"sandbox": "first", "command": "echo kept > file"})
	kept := structured[struct{ ID string }](t, call(t, s, "snapshot_sandbox", arguments{"sandbox": "first", "name": "good"}))
	ok(t, s, "create_sandbox", arguments{"name": "second", "from_snapshot": "first/good"})
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "second", "command": "cat file"}), "kept")
	ok(t, s, "delete_sandbox", arguments{"sandbox": "first"})

	// Its sandbox is gone, and it can be found and used all the same.
	res := call(t, s, "list_snapshots", arguments{"all": true})
	got := structured[struct {
		Snapshots []struct{ ID, Name string }
		Total     int
	}](t, res)
	if got.Total != 1 || got.Snapshots[0].ID != kept.ID || got.Snapshots[0].Name != "good" {
		t.Errorf("got %+v", got)
	}
	wantParts(t, text(t, res), "1 of 1 snapshots of your project", "good · id "+kept.ID, "of sandbox ")
	ok(t, s, "create_sandbox", arguments{"name": "third", "from_snapshot": kept.ID})
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "third", "command": "cat file"}), "kept")
	h.wrong(t, "create_sandbox", arguments{"from_snapshot": "first/none"}, "error (not_found)")
	h.wrong(t, "create_sandbox", arguments{"from_snapshot": ""}, "argument from_snapshot is empty")
	h.wrong(t, "list_snapshots", arguments{"all": true, "sandbox": "third"}, "argument all is given beside sandbox")
	if all, err := h.engine.Snapshots(t.Context(), callers["t-stranger"], snapshot.Query{}); err != nil || all.Total != 0 {
		t.Errorf("a stranger's: %+v, %v", all, err)
	}
}
