// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/store/sqlstore"
)

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	if err := sqlstore.Check(t.Context(), path); err != nil {
		t.Errorf("what is not there: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a look made the file")
	}
	st, err := sqlstore.Open(context.Background(), sqlstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sqlstore.Check(t.Context(), path); err != nil {
		t.Errorf("a sound one: %v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(b); i++ {
		b[i] ^= 0x5a
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sqlstore.Check(t.Context(), path); fault.Of(err) != fault.Unavailable {
		t.Errorf("a damaged one: %v", err)
	}
}
