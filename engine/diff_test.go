// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file; echo kept > kept")
	h.snapshot("box", "a")
	h.exec("box", "echo more >> file; touch new; rm kept")
	h.snapshot("box", "b")
	h.exec("box", "rm new")
	diff := func(r engine.DiffRequest) string {
		t.Helper()
		got, err := h.engine.Diff(t.Context(), alice, "box", r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if !got.Complete || r.Limit == 0 && got.Total != len(got.Files) {
			t.Errorf("%+v: got %+v", r, got)
		}
		var b strings.Builder
		for _, f := range got.Files {
			if f.Path != sandbox.Workspace { // its time changes
				b.WriteString(f.Action + " " + strings.TrimPrefix(f.Path, sandbox.Workspace+"/") + "\n")
			}
		}
		return b.String()
	}
	want := func(r engine.DiffRequest, want string) {
		t.Helper()
		if got := diff(r); got != want {
			t.Errorf("%+v: got %q, want %q", r, got, want)
		}
	}
	want(engine.DiffRequest{From: "a", To: "b"}, "modified file\ndeleted kept\ncreated new\n")
	want(engine.DiffRequest{From: "b", To: "a"}, "modified file\ncreated kept\ndeleted new\n")
	want(engine.DiffRequest{From: "a"}, "modified file\ndeleted kept\n")
	want(engine.DiffRequest{From: "b", To: "now"}, "deleted new\n")
	want(engine.DiffRequest{From: "now", To: "b"}, "created new\n")
	if got := diff(engine.DiffRequest{}); !strings.Contains(got, "created file\n") || strings.Contains(got, "new") {
		t.Errorf("since the image: %q", got)
	}
	t.Run("OfAStoppedSandboxStartsNothing", func(t *testing.T) {
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		want(engine.DiffRequest{From: "b"}, "deleted new\n")
		if got := h.get(s.ID); got.State != sandbox.Stopped {
			t.Errorf("it is %s", got.State)
		}
	})
	t.Run("IsBounded", func(t *testing.T) {
		got, err := h.engine.Diff(t.Context(), alice, "box", engine.DiffRequest{From: "a", To: "b", Limit: 1})
		if err != nil || len(got.Files) != 1 || got.Total < 3 {
			t.Errorf("got %+v, %v", got, err)
		}
		for _, n := range []int{-1, engine.MaxDiff + 1} {
			_, err := h.engine.Diff(t.Context(), alice, "box", engine.DiffRequest{Limit: n})
			wantCode(t, err, fault.Invalid)
		}
	})
	t.Run("OfWhatIsNotThereIsRefused", func(t *testing.T) {
		_, err := h.engine.Diff(t.Context(), alice, "box", engine.DiffRequest{From: "missing"})
		wantCode(t, err, fault.NotFound)
		_, err = h.engine.Diff(t.Context(), alice, "missing", engine.DiffRequest{})
		wantCode(t, err, fault.NotFound)
		node := h.create(engine.CreateRequest{Image: "node"})
		_, err = h.engine.Diff(t.Context(), alice, "box", engine.DiffRequest{From: string(h.snapshot(string(node.ID), "").ID)})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("EndsWithItsCaller", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		h.faulty.set(func(ctx context.Context, call string) error {
			if call == "diff" {
				cancel()
				<-ctx.Done()
				close(over)
				return ctx.Err()
			}
			return nil
		}, nil)
		_, err := h.engine.Diff(ctx, alice, "box", engine.DiffRequest{})
		wantCode(t, err, fault.Canceled)
		<-over
	})
}
