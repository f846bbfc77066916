// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

func record(id, key string) *sandbox.Sandbox {
	return &sandbox.Sandbox{ID: sandbox.ID(id), Project: "default", Key: key, State: sandbox.Running}
}

func mustUpdate(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// written is the file of a closed store with one record.
func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sandpit.db")
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(record("a", "k")) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// alter runs statements on a file behind the store's back.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Run("WhatWasClosedIsThereAgain", func(t *testing.T) {
		path := written(t)
		for range 2 {
			s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.View(t.Context(), func(tx store.Tx) error { _, err := tx.Sandboxes().ByKey("default", "k"); return err }); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("OnlyItsOwnerMayReadTheFiles", func(t *testing.T) {
		old := syscall.Umask(0)
		defer syscall.Umask(old)
		path := written(t)
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		s := open(t, path)
		mustUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(record("b", "")) })
		names, err := filepath.Glob(path + "*")
		if err != nil || len(names) != 2 {
			t.Fatalf("got the files %v, %v, want two", names, err)
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v, %v, want 0600", filepath.Base(name), info.Mode(), err)
			}
		}
	})
	t.Run("APathOfAnyCharactersWorks", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a?b#c%41 d&_pragma=x")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		open(t, filepath.Join(dir, "sand pit?.db"))
		if _, err := os.Stat(filepath.Join(dir, "sand pit?.db")); err != nil {
			t.Error(err)
		}
	})

	unavailable := func(t *testing.T, path, says string) {
		t.Helper()
		before, _ := os.ReadFile(path)
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
		if err == nil {
			_ = s.Close()
			t.Fatal("it was opened")
		}
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.As(err).Message, says) || fault.As(err).Remedy == "" {
			t.Errorf("got %q: %v, want unavailable, saying %q, with a remedy", fault.Of(err), err, says)
		}
		after, _ := os.ReadFile(path)
		if !bytes.Equal(before, after) {
			t.Error("the file was changed")
		}
	}
	t.Run("ANewerSchemaIsRefused", func(t *testing.T) {
		path := written(t)
		alter(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)")
		unavailable(t, path, "schema 999")
	})
	t.Run("AnotherProgramsDataBaseIsRefused", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "other.db")
		alter(t, path, "CREATE TABLE sandboxes (x)")
		unavailable(t, path, "another program")
		alter(t, path, "DROP TABLE sandboxes", "PRAGMA application_id = 7")
		unavailable(t, path, "another program")
	})
	t.Run("AFileThatIsNoDataBaseIsRefused", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sandpit.db")
		noise := make([]byte, 20000)
		_, _ = rand.Read(noise)
		if err := os.WriteFile(path, noise, 0o600); err != nil {
			t.Fatal(err)
		}
		unavailable(t, path, "damaged")
	})
	t.Run("ACutFileIsRefused", func(t *testing.T) {
		path := written(t)
		if err := os.Truncate(path, 3*4096); err != nil {
			t.Fatal(err)
		}
		unavailable(t, path, "damaged")
	})
	t.Run("ADamagedSchemaIsRefused", func(t *testing.T) {
		path := written(t)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 3900), 110); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		unavailable(t, path, "damaged")
	})
	t.Run("ADirectoryThatIsMissingIsNotMade", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "missing")
		unavailable(t, filepath.Join(dir, "sandpit.db"), "sandpit.db")
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("got %v, want no directory", err)
		}
	})
	t.Run("ADirectoryIsNoFile", func(t *testing.T) { unavailable(t, t.TempDir(), "not a regular file") })
	t.Run("ADeviceIsNoFile", func(t *testing.T) {
		unavailable(t, "/dev/null", "not a regular file")
		if info, err := os.Stat("/dev/null"); err != nil || info.Mode().Type()&fs.ModeDevice == 0 {
			t.Fatalf("/dev/null is %v, %v", info, err)
		}
	})
	t.Run("ACanceledContextOpensNothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(t.TempDir(), "sandpit.db")})
		if !fault.Is(err, fault.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
	})
	t.Run("AnEmptyPathIsInvalid", func(t *testing.T) {
		if _, err := sqlstore.Open(t.Context(), sqlstore.Options{}); !fault.Is(err, fault.Invalid) {
			t.Errorf("got %v, want invalid", err)
		}
	})
	t.Run("AMigrationThatWasCutShortIsDoneAgain", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sandpit.db")
		// The states that a crash leaves: marked as ours; with goose's table.
		alter(t, path, "PRAGMA application_id = 1936746868")
		open(t, path)
		path = filepath.Join(t.TempDir(), "sandpit.db")
		alter(t, path, "PRAGMA application_id = 1936746868",
			"CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))",
			"INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1)")
		open(t, path)
	})
}
