// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	id := h.box()
	watch := func(t *testing.T, path string, o client.WatchOptions) *client.Watch {
		t.Helper()
		w, err := h.Watch(ctx, id, path, o)
		must(t, err)
		t.Cleanup(func() { _ = w.Close() })
		return w
	}
	t.Run("TellsWhatChangesAndHowItEnds", func(t *testing.T) {
		must(t, h.Mkdir(ctx, id, v1.MakeDir{Path: "a/b"}))
		w := watch(t, "a", client.WatchOptions{Recursive: true})
		must(t, h.Move(ctx, id, v1.MoveFile{From: "a/b", To: "a/c"}))
		e, err := w.Next()
		if err != nil || e.Seq != 1 || e.Type != "renamed" || e.From != "/workspace/a/b" || e.Path != "/workspace/a/c" || !e.IsDir || w.End() != nil {
			t.Errorf("got %+v, %v", e, err)
		}
		must(t, h.Remove(ctx, id, "a", "", true))
		for err == nil {
			_, err = w.Next()
		}
		if err != io.EOF || w.End() == nil || w.End().Reason != "removed" {
			t.Errorf("got %v, %+v", err, w.End())
		}
		if _, err := w.Next(); err != io.EOF {
			t.Errorf("again: got %v", err)
		}
		must(t, w.Close())
		must(t, w.Close())
	})
	t.Run("ClosingEndsANextThatWaits", func(t *testing.T) {
		w := watch(t, "", client.WatchOptions{})
		over := make(chan error)
		go func() {
			_, err := w.Next()
			over <- err
		}()
		must(t, w.Close())
		wantCode(t, <-over, fault.Canceled)
	})
	t.Run("SoDoesTheContext", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		w, err := h.Watch(ctx, id, "", client.WatchOptions{})
		must(t, err)
		cancel()
		_, err = w.Next()
		wantCode(t, err, fault.Canceled)
		must(t, w.Close())
	})
	t.Run("ErrorsAreTheServers", func(t *testing.T) {
		_, err := h.Watch(ctx, id, "none", client.WatchOptions{})
		wantCode(t, err, fault.NotFound)
		_, err = h.Watch(ctx, id, "", client.WatchOptions{User: "nobody"})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("AStreamThatBreaksIsNoEnd", func(t *testing.T) {
		const begun = "event: watching\ndata: {}\n\n"
		for _, body := range []string{"", "event: created\ndata: {}\n\n", begun, begun + "event: created\nda", begun + "event: created\ndata: {\n\n", begun + "event: end\ndata: {\n\n", begun + "event: error\ndata: {\n\n"} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) }))
			w, err := client.New(srv.URL, "x", client.Options{}).Watch(ctx, "a", "", client.WatchOptions{})
			if err == nil {
				_, err = w.Next()
				_, again := w.Next()
				wantCode(t, again, fault.Unavailable)
				must(t, w.Close())
			}
			wantCode(t, err, fault.Unavailable)
			srv.Close()
		}
	})
	t.Run("TheServersEndIsTold", func(t *testing.T) {
		w := watch(t, "", client.WatchOptions{})
		h.api.Close()
		_, err := w.Next()
		wantCode(t, err, fault.Unavailable)
	})
}
