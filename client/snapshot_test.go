// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// says runs a command and gives what it printed.
func (h *house) says(ref, command string) string {
	h.t.Helper()
	res, err := h.Exec(h.t.Context(), ref, v1.Exec{Command: &command})
	must(h.t, err)
	return res.Stdout
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	s, _, err := h.Create(ctx, v1.CreateSandbox{Key: new("web #1")})
	must(t, err)
	h.says("web #1", "echo one > a")
	first, err := h.Snapshot(ctx, "web #1", v1.CreateSnapshot{Name: new("before %2F?")})
	must(t, err)
	if first.ID == "" || first.Name == nil || *first.Name != "before %2F?" || first.Sandbox == nil || *first.Sandbox != s.ID || first.Status != "ready" {
		t.Errorf("got %+v", first)
	}
	_, err = h.Snapshot(ctx, s.ID, v1.CreateSnapshot{Name: first.Name})
	wantCode(t, err, fault.Exists)
	second, err := h.Snapshot(ctx, s.ID, v1.CreateSnapshot{})
	must(t, err)
	if second.Parent == nil || *second.Parent != first.ID {
		t.Errorf("the second's parent: got %v, want %s", second.Parent, first.ID)
	}

	t.Run("AreNamedByIdAndByTheirSandbox", func(t *testing.T) {
		for _, name := range []string{first.ID, "web #1/before %2F?", s.ID + "/before %2F?", s.ID + "/" + first.ID} {
			if got, err := h.GetSnapshot(ctx, name); err != nil || got.ID != first.ID {
				t.Errorf("%q: got %v, %v", name, got, err)
			}
		}
		_, err := h.GetSnapshot(ctx, "web #1/never")
		wantCode(t, err, fault.NotFound)
	})
	t.Run("AreListedPageByPage", func(t *testing.T) {
		var got []string
		for one, err := range h.Snapshots(ctx, client.SnapshotQuery{Sandbox: "web #1", Limit: 1, Oldest: true}) {
			must(t, err)
			got = append(got, one.ID)
		}
		if want := []string{first.ID, second.ID}; strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %v, want %v", got, want)
		}
		page, err := h.SnapshotsPage(ctx, client.SnapshotQuery{})
		if err != nil || page.Total != 2 || page.Items[0].ID != second.ID {
			t.Errorf("got %+v, %v", page, err)
		}
		for _, err := range h.Snapshots(ctx, client.SnapshotQuery{Sandbox: "nobody"}) {
			wantCode(t, err, fault.NotFound)
		}
	})
	t.Run("TellWhatChanged", func(t *testing.T) {
		h.says(s.ID, "echo changed > a; echo new > b")
		d, err := h.Diff(ctx, s.ID, client.DiffOptions{From: *first.Name})
		must(t, err)
		if len(d.Items) != 2 || d.Total != 2 || d.Truncated || d.Items[0].Action != "modified" || !strings.HasSuffix(d.Items[1].Path, "/b") || d.From != *first.Name || d.To != "now" {
			t.Errorf("got %+v", d)
		}
		d, err = h.Diff(ctx, s.ID, client.DiffOptions{From: first.ID, Limit: 1})
		if err != nil || len(d.Items) != 1 || d.Total != 2 || !d.Truncated {
			t.Errorf("got %+v, %v", d, err)
		}
	})
	t.Run("AreRolledBackTo", func(t *testing.T) {
		got, err := h.Rollback(ctx, "web #1", *first.Name)
		must(t, err)
		if got.ID != s.ID || got.Status != "running" || got.ParentSnapshot == nil || *got.ParentSnapshot != first.ID {
			t.Errorf("got %+v", got)
		}
		if out := h.says(s.ID, "cat a; ls"); out != "one\na\n" {
			t.Errorf("after it: got %q", out)
		}
	})
	t.Run("AreForked", func(t *testing.T) {
		forks, err := h.Fork(ctx, s.ID, v1.ForkSandbox{Count: new(2), From: first.Name, Metadata: map[string]string{"n": "1"}})
		must(t, err)
		if len(forks) != 2 || forks[0].ForkedFrom == nil || *forks[0].ForkedFrom != s.ID || forks[1].Metadata["n"] != "1" {
			t.Fatalf("got %+v", forks)
		}
		if out := h.says(forks[1].ID, "cat a"); out != "one\n" {
			t.Errorf("in a fork: got %q", out)
		}
		one, err := h.Fork(ctx, s.ID, v1.ForkSandbox{Key: new("copy")})
		if err != nil || len(one) != 1 || one[0].Ref() != "copy" {
			t.Errorf("got %+v, %v", one, err)
		}
	})
	t.Run("ComeBackOutOfAnArchive", func(t *testing.T) {
		r, err := h.ExportSnapshot(ctx, "web #1/before %2F?")
		must(t, err)
		archive, err := io.ReadAll(r)
		must(t, err)
		must(t, r.Close())
		for _, o := range []client.ImportOptions{{Name: "back"}, {Name: "sized", Size: int64(len(archive))}} {
			back, err := h.ImportSnapshot(ctx, bytes.NewReader(archive), o)
			must(t, err)
			if back.Sandbox != nil || back.Name == nil || *back.Name != o.Name {
				t.Errorf("got %+v", back)
			}
			again, _, err := h.Create(ctx, v1.CreateSandbox{FromSnapshot: &back.ID})
			must(t, err)
			if out := h.says(again.ID, "cat a"); out != "one\n" {
				t.Errorf("in a sandbox of it: got %q", out)
			}
		}
		_, err = h.ImportSnapshot(ctx, strings.NewReader("no archive"), client.ImportOptions{})
		wantCode(t, err, fault.Invalid)
		_, err = h.ExportSnapshot(ctx, "nosuch0000000000")
		wantCode(t, err, fault.NotFound)
	})
	t.Run("AreDeleted", func(t *testing.T) {
		must(t, h.DeleteSnapshot(ctx, "web #1/before %2F?"))
		wantCode(t, h.DeleteSnapshot(ctx, first.ID), fault.NotFound)
		must(t, h.DeleteSnapshot(ctx, second.ID))
	})
}

func TestAnArchiveThatBreaksOffIsAnError(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", v1.SnapshotType)
		_, _ = w.Write([]byte("half of it"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	r, err := client.New(srv.URL, "t", client.Options{}).ExportSnapshot(t.Context(), "x")
	must(t, err)
	defer r.Close()
	got, err := io.ReadAll(r)
	if string(got) != "half of it" || !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %q and %v, want the half and Unavailable", got, err)
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	s, _, err := h.Create(ctx, v1.CreateSandbox{IdleAction: new("pause"), TTLSeconds: new(int64(3600)), TTLMode: new("sliding"), AutoStart: new(false)})
	must(t, err)
	if s.IdleAction != "pause" || s.TTLSeconds == nil || *s.TTLSeconds != 3600 || s.ExpiresAt != nil || s.AutoStart || s.Checkpoints != "off" {
		t.Errorf("got %+v", s)
	}
	paused, err := h.Pause(ctx, s.ID)
	if err != nil || paused.Status != "paused" || paused.StopCause != "user" || paused.StoppedAt == nil {
		t.Errorf("got %+v, %v", paused, err)
	}
	_, err = h.Exec(ctx, s.ID, v1.Exec{Command: new("true")})
	if e := wantCode(t, err, fault.State); !strings.Contains(e.Remedy, "resume") {
		t.Errorf("the remedy: got %q", e.Remedy)
	}
	if got, err := h.Resume(ctx, s.ID); err != nil || got.Status != "running" || got.StoppedAt != nil || got.RunSeconds < paused.RunSeconds {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err := h.Update(ctx, s.ID, v1.UpdateSandbox{MemoryMB: new(300), AutoResume: new(true), Checkpoints: new("command"), TTLSeconds: new(int64(0)), TTLMode: new("sliding")})
	if err != nil || got.MemoryMB != 300 || !got.AutoResume || got.Checkpoints != "command" || got.TTLMode != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	res, err := h.Exec(ctx, s.ID, v1.Exec{Command: new("echo x > x")})
	must(t, err)
	if res.SnapshotID == "" {
		t.Error("no checkpoint was taken after a command that changed a file")
	}
	if got, err := h.Restart(ctx, s.ID); err != nil || got.ID != s.ID || got.Status != "running" {
		t.Errorf("got %+v, %v", got, err)
	}
	if out := h.says(s.ID, "ls"); out != "" {
		t.Errorf("after a restart: got %q, want no files", out)
	}
}
