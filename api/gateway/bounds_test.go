// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/api/gateway"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/guard/guardtest"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// stopped are records of sandboxes, which no host has.
func stopped(t *testing.T, s *enginetest.Server, ids []sandbox.ID) {
	t.Helper()
	must(t, s.Store.Update(t.Context(), func(tx store.Tx) error {
		for i, id := range ids {
			err := tx.Sandboxes().Insert(&sandbox.Sandbox{
				ID: id, Project: "default", Runtime: "memory", Image: "python", State: sandbox.Stopped, Limits: sandbox.Limits{CPU: 1, MemoryMB: 512, DiskMB: 1024, Pids: 64},
				Network: sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, CreatedAt: time.Now().Add(time.Duration(i) * time.Microsecond), StoppedAt: time.Now(),
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// Of lists that have no next page the bounds that docs/gateway.md says are those that there are.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	s := enginetest.Start(t, t.TempDir())
	ask := guardtest.Getter(t, func(t *testing.T, g *guard.Guard) http.Handler { return over(t, g, s) })
	get := func(path string) (int, []json.RawMessage, string) {
		t.Helper()
		w := ask(gateway.Base + "/api/v1/" + path)
		var list struct{ Items []json.RawMessage }
		_ = json.Unmarshal(w.Body.Bytes(), &list) // of a refusal there is none
		return w.Code, list.Items, w.Body.String()
	}
	ids := make([]sandbox.ID, 10_001)
	for i := range ids {
		ids[i] = sandbox.NewID()
	}
	stopped(t, s, ids[:10_000])
	if status, items, _ := get("sandboxes"); status != http.StatusOK || len(items) != 10_000 {
		t.Errorf("of 10,000 sandboxes: %d with %d", status, len(items))
	}
	stopped(t, s, ids[10_000:])
	if status, _, text := get("sandboxes"); status != http.StatusUnprocessableEntity || !strings.Contains(text, "more than 10000 sandboxes") || !strings.Contains(text, "GET /v1/sandboxes") {
		t.Errorf("of 10,001 sandboxes: %d %.200s", status, text)
	}

	must(t, s.Store.Update(t.Context(), func(tx store.Tx) error {
		for i := range 250 {
			if err := tx.Events().Append(&sandbox.Event{Sandbox: ids[0], Project: "default", At: time.Now(), Type: sandbox.EventExec, Actor: "alice", Command: fmt.Sprint("echo ", i)}); err != nil {
				return err
			}
		}
		return nil
	}))
	status, items, text := get("sandboxes/" + string(ids[0]) + "/activity")
	var newest struct{ Command string }
	if status == http.StatusOK && len(items) > 0 {
		must(t, json.Unmarshal(items[0], &newest))
	}
	if status != http.StatusOK || len(items) != 200 || newest.Command != "echo 249" {
		t.Errorf("of 250 events: %d with %d, the first of them %q: %.200s", status, len(items), newest.Command, text)
	}
}
