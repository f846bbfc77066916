// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// A page by each sort of 30,000 sandboxes, none of which but creation has an index: it prints what each takes.
func TestSoakSortsOfManySandboxes(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") == "" {
		t.Skip("it inserts 30,000 rows: SANDPIT_SOAK=1")
	}
	const n = 30_000
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := 0; i < n; i += 1000 {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			for j := i; j < i+1000; j++ {
				b := &sandbox.Sandbox{
					ID: sandbox.ID(fmt.Sprintf("box%013d", j)), Project: "default", Image: "python", Runtime: "native", State: sandbox.Stopped,
					Limits:    sandbox.Limits{CPU: float64(1 + j%7), MemoryMB: 128 * (1 + j%97), DiskMB: 256 * (1 + j%89), Pids: 100},
					Metadata:  map[string]string{"text": strings.Repeat("x", 400)},
					CreatedAt: epoch.Add(time.Duration(j) * time.Second), LastActivity: epoch.Add(time.Duration(j*7919%n) * time.Second),
				}
				if err := tx.Sandboxes().Insert(b); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range store.SandboxSorts() {
		q := store.SandboxQuery{Project: "default", Sort: by, Limit: 50}
		for page := range 2 {
			began := time.Now()
			var items []*sandbox.Sandbox
			err := s.View(t.Context(), func(tx store.Tx) (err error) { items, q.Cursor, err = tx.Sandboxes().List(q); return err })
			if err != nil || len(items) != 50 || q.Cursor == "" {
				t.Fatalf("%s: %d rows, %v", by, len(items), err)
			}
			t.Logf("%s, page %d of %d sandboxes: %v", by, page+1, n, time.Since(began).Round(100*time.Microsecond))
		}
	}
}
