// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/store/sqlstore"
)

func TestTheAdminTokenIsMadeOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(dir, "db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	log := slog.New(slog.DiscardHandler)
	path := filepath.Join(dir, AdminTokenFile)

	if _, err := openTokens(Config{Data: dir}, db, log); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v; want 0600", st.Mode(), err)
	}
	// A later start with a token of its own takes both.
	const given = "a token of the operator's own"
	tokens, err := openTokens(Config{Data: dir, AdminToken: given}, db, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{given, strings.TrimSpace(string(made))} {
		if _, err := tokens.Check(t.Context(), token); err != nil {
			t.Errorf("%d characters: %v", len(token), err)
		}
	}
	if _, err := tokens.Check(t.Context(), "another token of nobody's own"); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a wrong token: got %v", err)
	}
	if now, _ := os.ReadFile(path); string(now) != string(made) {
		t.Error("the kept token changed")
	}
}

func TestAGivenAdminTokenIsNotWrittenDown(t *testing.T) {
	dir := t.TempDir()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(dir, "db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := openTokens(Config{Data: dir, AdminToken: "0123456789abcdef"}, db, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, AdminTokenFile)); !os.IsNotExist(err) {
		t.Errorf("Stat: got %v, want that there is no file", err)
	}
}
