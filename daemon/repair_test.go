// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/store/sqlstore"
)

// What is made on a host and what is another user's is tried with real servers, in
// test/load; here are files.
func TestRepair(t *testing.T) {
	setup := func(t *testing.T) Config {
		t.Helper()
		skiptest.WithoutRoot(t, "the native runtime does")
		cfg := DefaultConfig()
		cfg.Data = filepath.Join(t.TempDir(), "data")
		if err := os.MkdirAll(filepath.Join(cfg.Data, "native", "instances"), 0o700); err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	is := func(t *testing.T, got []Check, name string, status CheckStatus, mended bool) {
		t.Helper()
		if !slices.ContainsFunc(got, func(c Check) bool { return c.Name == name && c.Status == status && (c.Done != "") == mended }) {
			t.Errorf("nothing of %s, %s, in %+v", name, status, got)
		}
	}
	mode := func(t *testing.T, path string) os.FileMode {
		t.Helper()
		st, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Mode().Perm()
	}
	t.Run("RewritesRecordsThatGiveNoSpaceBack", func(t *testing.T) {
		cfg := setup(t)
		path := filepath.Join(cfg.Data, dbFile)
		st, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		if _, err := db.ExecContext(t.Context(), "PRAGMA auto_vacuum = 0; VACUUM"); err != nil { // as older versions had it
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		is(t, Repair(t.Context(), cfg, false), "records", Warned, false)
		is(t, Repair(t.Context(), cfg, true), "records", Passed, true)
		if got := Repair(t.Context(), cfg, false); slices.ContainsFunc(got, func(c Check) bool { return c.Name == "records" }) {
			t.Errorf("they were rewritten, and are found again: %+v", got)
		}
	})
	t.Run("ClosesWhatIsOpenToOthers", func(t *testing.T) {
		cfg := setup(t)
		for _, name := range keyFiles {
			path := filepath.Join(cfg.Data, name)
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o640)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(cfg.Data, 0o770); err != nil {
			t.Fatal(err)
		}
		is(t, Repair(t.Context(), cfg, false), "data", Warned, false)
		if mode(t, cfg.Data) != 0o770 {
			t.Error("a look changed a mode")
		}
		got := Repair(t.Context(), cfg, true)
		is(t, got, "data", Passed, true)
		for _, name := range keyFiles {
			is(t, got, "data/"+name, Passed, true)
			if got := mode(t, filepath.Join(cfg.Data, name)); got != 0o600 {
				t.Errorf("%s has mode %o", name, got)
			}
		}
		if got := mode(t, cfg.Data); got != 0o700 {
			t.Errorf("the directory has mode %o", got)
		}
	})
	t.Run("FollowsNoLinkAndTakesNobodysPlace", func(t *testing.T) {
		cfg := setup(t)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		if err := os.WriteFile(elsewhere, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, filepath.Join(cfg.Data, PreviewKeyFile)); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(filepath.Join(cfg.Data, "native"), 4242, 4242); err != nil {
			t.Fatal(err)
		}
		got := Repair(t.Context(), cfg, true)
		is(t, got, "data/"+PreviewKeyFile, Failed, false)
		is(t, got, "data/native", Failed, false)
		if mode(t, elsewhere) != 0o644 {
			t.Error("a link was followed")
		}
	})
	t.Run("LeavesADirectoryThatIsInUse", func(t *testing.T) {
		cfg := setup(t)
		lock, err := lockData(cfg.Data)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lock.Close() }()
		if err := os.Chmod(filepath.Join(cfg.Data, "native"), 0o777); err != nil {
			t.Fatal(err)
		}
		got := Repair(t.Context(), cfg, true)
		if len(got) != 1 || !strings.Contains(got[0].Detail, "has a server already") || mode(t, filepath.Join(cfg.Data, "native")) != 0o777 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("MakesNothingWhereNothingIs", func(t *testing.T) {
		cfg := setup(t)
		cfg.Data += "-not"
		is(t, Repair(t.Context(), cfg, true), "data", Passed, false)
		if _, err := os.Lstat(cfg.Data); err == nil {
			t.Error("it made the directory")
		}
	})
}
