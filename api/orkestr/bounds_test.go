// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/orkestr"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// tokens takes every token as one of the same project.
type tokens struct{}

func (tokens) Admit(ctx context.Context, _ string) (access.Caller, context.Context, func(), error) {
	return access.Caller{Project: "default", Actor: "alice", Scopes: access.DefaultScopes()}, ctx, func() {}, nil
}

// taken are records of snapshots, which no disk has.
func taken(t *testing.T, s *enginetest.Server, from, to int) {
	t.Helper()
	must(t, s.Store.Update(t.Context(), func(tx store.Tx) error {
		for i := from; i < to; i++ {
			err := tx.Snapshots().Insert(&sandbox.Snapshot{
				ID: sandbox.NewID(), Project: "default", Sandbox: "gone", Name: fmt.Sprint("n", i), Runtime: "memory", State: sandbox.SnapshotReady, CreatedAt: time.Now(),
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// A list of snapshots, which has no next page, has 10,000.
func TestTheListOfSnapshotsIsBounded(t *testing.T) {
	t.Parallel()
	g, err := guard.New(guard.Options{Tokens: tokens{}})
	must(t, err)
	s := enginetest.Start(t, t.TempDir())
	a := over(t, g, s)
	list := func() (int, int, string) {
		t.Helper()
		r := httptest.NewRequest("GET", "http://127.0.0.1"+orkestr.Base+"/v1/sandboxes/snapshots", nil)
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		var got struct{ Snapshots []json.RawMessage }
		_ = json.Unmarshal(w.Body.Bytes(), &got) // of a refusal there is none
		return w.Code, len(got.Snapshots), w.Body.String()
	}
	taken(t, s, 0, 10_000)
	if status, n, _ := list(); status != http.StatusOK || n != 10_000 {
		t.Errorf("of 10,000 snapshots: %d with %d", status, n)
	}
	taken(t, s, 10_000, 10_001)
	if status, _, text := list(); status != http.StatusUnprocessableEntity || !strings.Contains(text, "more than 10000 snapshots") || !strings.Contains(text, "GET /v1/snapshots") {
		t.Errorf("of 10,001 snapshots: %d %.200s", status, text)
	}
}
