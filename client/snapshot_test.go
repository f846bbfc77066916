// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
)

// says runs a command and returns what it printed.
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
	checktest.Some(t, "ID", first.ID)
	checktest.Points(t, "Name", first.Name, "before %2F?")
	checktest.Points(t, "Sandbox", first.Sandbox, s.ID)
	checktest.Equal(t, "Status", first.Status, "ready")
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
		if err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, "Total", page.Total, 2)
		checktest.Equal(t, "Items[0].ID", page.Items[0].ID, second.ID)
		for _, err := range h.Snapshots(ctx, client.SnapshotQuery{Sandbox: "nobody"}) {
			wantCode(t, err, fault.NotFound)
		}
	})
	t.Run("TellWhatChanged", func(t *testing.T) {
		h.says(s.ID, "echo changed > a; echo new > b")
		d, err := h.Diff(ctx, s.ID, client.DiffOptions{From: *first.Name})
		must(t, err)
		checktest.Len(t, "Items", d.Items, 2)
		checktest.Equal(t, "Total", d.Total, 2)
		checktest.Equal(t, "Truncated", d.Truncated, false)
		checktest.Equal(t, "Items[0].Action", d.Items[0].Action, "modified")
		if !strings.HasSuffix(d.Items[1].Path, "/b") {
			t.Errorf("Items[1].Path: got %q", d.Items[1].Path)
		}
		checktest.Equal(t, "From", d.From, *first.Name)
		checktest.Equal(t, "To", d.To, "now")
		d, err = h.Diff(ctx, s.ID, client.DiffOptions{From: first.ID, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Len(t, "Items", d.Items, 1)
		checktest.Equal(t, "Total", d.Total, 2)
		checktest.Equal(t, "Truncated", d.Truncated, true)
	})
	t.Run("AreRolledBackTo", func(t *testing.T) {
		got, err := h.Rollback(ctx, "web #1", *first.Name)
		must(t, err)
		checktest.Equal(t, "ID", got.ID, s.ID)
		checktest.Equal(t, "Status", got.Status, "running")
		checktest.Points(t, "ParentSnapshot", got.ParentSnapshot, first.ID)
		if out := h.says(s.ID, "cat a; ls"); out != "one\na\n" {
			t.Errorf("after it: got %q", out)
		}
	})
	t.Run("AreForked", func(t *testing.T) {
		forks, err := h.Fork(ctx, s.ID, v1.ForkSandbox{Count: new(2), From: first.Name, Metadata: map[string]string{"n": "1"}})
		must(t, err)
		checktest.Len(t, "forks", forks, 2)
		checktest.Points(t, "ForkedFrom", forks[0].ForkedFrom, s.ID)
		checktest.Equal(t, "Metadata['n']", forks[1].Metadata["n"], "1")
		if out := h.says(forks[1].ID, "cat a"); out != "one\n" {
			t.Errorf("in a fork: got %q", out)
		}
		one, err := h.Fork(ctx, s.ID, v1.ForkSandbox{Key: new("copy")})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Len(t, "one", one, 1)
		checktest.Equal(t, "one[0].Ref()", one[0].Ref(), "copy")
	})
	t.Run("AreLeftByAPromotion", func(t *testing.T) {
		box, _, err := h.Create(ctx, v1.CreateSandbox{Key: new("place"), Metadata: map[string]string{"of": "place"}})
		must(t, err)
		forks, err := h.Fork(ctx, box.ID, v1.ForkSandbox{Key: new("better")})
		must(t, err)
		got, err := h.Promote(ctx, "better", "before")
		must(t, err)
		checktest.Equal(t, "ID", got.ID, forks[0].ID)
		checktest.Equal(t, "Ref()", got.Ref(), "place")
		kept, err := h.GetSnapshot(ctx, "place/before")
		must(t, err)
		checktest.Points(t, "ParentSnapshot", got.ParentSnapshot, kept.ID)
		must(t, h.Delete(ctx, "place"))
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
			checktest.Absent(t, "Sandbox", back.Sandbox)
			checktest.Points(t, "Name", back.Name, o.Name)
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
	checktest.Equal(t, "IdleAction", s.IdleAction, "pause")
	checktest.Points(t, "TTLSeconds", s.TTLSeconds, 3600)
	checktest.Absent(t, "ExpiresAt", s.ExpiresAt)
	checktest.Equal(t, "AutoStart", s.AutoStart, false)
	checktest.Equal(t, "Checkpoints", s.Checkpoints, "off")
	paused, err := h.Pause(ctx, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, "Status", paused.Status, "paused")
	checktest.Equal(t, "StopCause", paused.StopCause, "user")
	checktest.Some(t, "StoppedAt", paused.StoppedAt)
	_, err = h.Exec(ctx, s.ID, v1.Exec{Command: new("true")})
	if e := wantCode(t, err, fault.State); !strings.Contains(e.Remedy, "resume") {
		t.Errorf("the remedy: got %q", e.Remedy)
	}
	if got, err := h.Resume(ctx, s.ID); err != nil || got.Status != "running" || got.StoppedAt != nil || got.RunSeconds < paused.RunSeconds {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err := h.Update(ctx, s.ID, v1.UpdateSandbox{MemoryMB: new(300), AutoResume: new(true), Checkpoints: new("command"), TTLSeconds: new(int64(0)), TTLMode: new("sliding")})
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, "MemoryMB", got.MemoryMB, 300)
	checktest.Equal(t, "AutoResume", got.AutoResume, true)
	checktest.Equal(t, "Checkpoints", got.Checkpoints, "command")
	checktest.Absent(t, "TTLMode", got.TTLMode)
	res, err := h.Exec(ctx, s.ID, v1.Exec{Command: new("echo x > x")})
	must(t, err)
	if res.SnapshotID == "" {
		t.Error("no checkpoint was taken after a command that changed a file")
	}
	for _, c := range []struct {
		name  string
		do    func(context.Context, string) (*v1.Sandbox, error)
		files string
	}{{"restart", h.Restart, "x\n"}, {"reset", h.Reset, ""}} {
		got, err := c.do(ctx, s.ID)
		must(t, err)
		checktest.Equal(t, "ID", got.ID, s.ID)
		checktest.Equal(t, "Status", got.Status, "running")
		if out := h.says(s.ID, "ls"); out != c.files {
			t.Errorf("after a %s: got %q, want %q", c.name, out, c.files)
		}
	}
}

// TestRestartOfAServerThatWouldEmptyTheDisk asks a server as it was before restart kept the disk: it
// refuses a parameter that it does not know before it does anything.
func TestRestartOfAServerThatWouldEmptyTheDisk(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"is no parameter of this route", "is not a parameter of this route"} {
		emptied := false
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				emptied = true
				return
			}
			w.Header().Set("Content-Type", v1.ProblemType)
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(v1.Problem{Status: 422, Code: "invalid", Detail: "keep_disk: " + message, Errors: []v1.ProblemField{{Field: "keep_disk", Message: message}}})
		}))
		_, err := client.New(srv.URL, "", client.Options{}).Restart(t.Context(), "web")
		srv.Close()
		if e := fault.As(err); emptied || e.Code != fault.Unsupported || !strings.Contains(e.Message, "empties the disk of the sandbox web") || e.Remedy == "" {
			t.Errorf("got %v, and the disk is empty: %v", err, emptied)
		}
	}
}
