// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/access/bearer"
	"sandpit.dev/fault"
	"sandpit.dev/store/sqlstore"
)

func TestAProfileComesWithItsToken(t *testing.T) {
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "sandpit.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := bearer.New(s, bearer.Options{Admins: []bearer.Secret{bearer.NewSecret(adminToken)}, Profiles: []string{"sandpit", "mcp-sandboxd"}})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := a.Check(t.Context(), adminToken)
	if err != nil || admin.Profile != "" {
		t.Fatalf("the admin token: %+v, %v", admin, err)
	}
	for _, profile := range []string{"mcp-sandboxd", ""} {
		made, secret, err := a.Create(t.Context(), admin, bearer.NewToken{Name: "of " + profile, Profile: profile})
		if err != nil || made.Profile != profile {
			t.Fatalf("%q: got %+v, %v", profile, made, err)
		}
		if c, err := a.Check(t.Context(), secret.Reveal()); err != nil || c.Profile != profile {
			t.Errorf("%q: the caller has %q, %v", profile, c.Profile, err)
		}
	}
	_, _, err = a.Create(t.Context(), admin, bearer.NewToken{Name: "odd", Profile: "nonsense"})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.As(err).Remedy, "mcp-sandboxd") {
		t.Errorf("a profile that is none: %v", err)
	}
}
