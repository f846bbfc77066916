// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/access/bearer"
	"sandpit.dev/store/sqlstore"
)

// TestTheFormOfATokenTellsNothingOfIt: what Ours says is the same of tokens that are valid and of those that are not.
func TestTheFormOfATokenTellsNothingOfIt(t *testing.T) {
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	made, opaque, jwt := "spt_admin_"+strings.Repeat("a", 52), strings.Repeat("operator", 5), "eyJh."+strings.Repeat("b", 40)+".c"
	texts := []string{made, "spt_guess", "sps_a.b", opaque, "its-own", jwt, "eyJh.e30.x"}
	for _, c := range []struct {
		admin string
		want  string // of each text
	}{
		{made, "YYYnnnn"}, {opaque, "YYYYYnn"}, {jwt, "YYYnnYY"},
	} {
		a, err := bearer.New(db, bearer.Options{Admins: []bearer.Secret{bearer.NewSecret(c.admin)}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, text := range texts {
			got += map[bool]string{true: "Y", false: "n"}[a.Ours(text)]
		}
		if got != c.want {
			t.Errorf("with %.12s…: got %s, want %s", c.admin, got, c.want)
		}
	}
}
