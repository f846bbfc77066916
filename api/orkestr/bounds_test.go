// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/guard/guardtest"
	"sandpit.dev/api/orkestr"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

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
	s := enginetest.Start(t, t.TempDir())
	get := guardtest.Getter(t, func(t *testing.T, g *guard.Guard) http.Handler { return over(t, g, s) })
	list := func() (int, int, string) {
		t.Helper()
		w := get(orkestr.Base + "/v1/sandboxes/snapshots")
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
