// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package quota_test

import (
	"path/filepath"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/store"
	"sandpit.dev/store/quota"
	"sandpit.dev/store/sqlstore"
)

// A project that comes to be by a token has the quotas for new ones as they are then.
func TestNewProjectsHaveTheQuotasOfTheirTime(t *testing.T) {
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k, err := quota.Open(t.Context(), db, quota.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"before", "after"} {
		if i == 1 {
			var of project.Amounts
			of[project.Sandboxes] = 7
			k.SetNew(of)
		}
		if err := k.Store().Update(t.Context(), func(tx store.Tx) error {
			return tx.Tokens().Insert(&access.Token{ID: name, Project: name, Name: name, Hash: []byte(name), Scopes: access.DefaultScopes()})
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.View(t.Context(), func(tx store.Tx) error {
			p, err := tx.Projects().Get(name)
			if err == nil && p.Quotas[project.Sandboxes] != float64(7*i) {
				t.Errorf("%s may have %v sandboxes", name, p.Quotas[project.Sandboxes])
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
