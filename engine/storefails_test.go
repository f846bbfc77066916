// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// TestADatabaseThatTakesNothing has another process hold the database, or fills the
// disk under it: every verb says so, nothing is lost or halfway, and all works again
// after it, without a restart.
func TestADatabaseThatTakesNothing(t *testing.T) {
	for name, upset := range map[string]func(t *testing.T, h *house) (mend func()){
		"LockedByAnother": func(t *testing.T, h *house) func() {
			db := h.database(t)
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			return func() {
				if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
					t.Error(err)
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
		},
		"OnAFullDisk": func(t *testing.T, h *house) func() {
			ballast := filepath.Join(h.dir, "ballast")
			f, err := os.Create(ballast)
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = f.Write(make([]byte, 4096))
			}
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			return func() {
				if err := os.Remove(ballast); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if name == "OnAFullDisk" {
				smallDisk(t, dir)
			}
			h := open(t, dir)
			h.create(engine.CreateRequest{Key: "victim"})
			up := h.create(engine.CreateRequest{Key: "up"})
			h.exec("up", "echo kept > file")
			frozen := h.create(engine.CreateRequest{Key: "frozen"})
			h.pause("frozen")
			down := h.create(engine.CreateRequest{Key: "down"})
			if _, err := h.engine.Stop(t.Context(), alice, "down"); err != nil {
				t.Fatal(err)
			}
			h.recorded()
			mend := upset(t, h)
			for verb, do := range map[string]func(ctx context.Context) error{
				"create": func(ctx context.Context) error {
					_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Key: "new"})
					return err
				},
				"start":  func(ctx context.Context) error { _, err := h.engine.Start(ctx, alice, "down"); return err },
				"stop":   func(ctx context.Context) error { _, err := h.engine.Stop(ctx, alice, "up"); return err },
				"pause":  func(ctx context.Context) error { _, err := h.engine.Pause(ctx, alice, "up"); return err },
				"resume": func(ctx context.Context) error { _, err := h.engine.Resume(ctx, alice, "frozen"); return err },
				"delete": func(ctx context.Context) error { return h.engine.Delete(ctx, alice, "victim") },
				"update": func(ctx context.Context) error {
					_, err := h.engine.Update(ctx, alice, "up", engine.Patch{CPU: ptr(2.0)})
					return err
				},
				"exec": func(ctx context.Context) error {
					_, err := h.engine.Exec(ctx, alice, "up", engine.ExecRequest{Shell: "rm file"}, nil)
					return err
				},
				"upload": func(ctx context.Context) error {
					_, _, err := h.engine.WriteFile(ctx, alice, "up", "other", strings.NewReader("x"), agent.WriteOptions{})
					return err
				},
			} {
				if name == "LockedByAnother" && (verb == "exec" || verb == "upload") {
					continue // they wait in line for what the others still try, whoever went away
				}
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				err := do(ctx)
				cancel()
				switch fault.Of(err) {
				case fault.Unavailable, fault.Full, fault.Timeout, fault.Canceled:
				case "": // what the database has room for in its log goes on
					if name == "LockedByAnother" {
						t.Errorf("%s: it was done", verb)
					}
				default:
					t.Errorf("%s: got %q (%v)", verb, fault.Of(err), err)
				}
			}
			if got, err := h.engine.Get(t.Context(), alice, "up"); err != nil || got.State != sandbox.Running {
				t.Errorf("reading goes on: %+v, %v", got, err)
			}
			mend()
			for _, s := range []*sandbox.Sandbox{up, frozen, down} {
				// Verbs whose callers gave up may get their turn now, and come before this.
				if got, err := h.engine.Start(t.Context(), alice, s.Key); err != nil || got.State != sandbox.Running {
					t.Errorf("%s afterwards: %+v, %v", s.Key, got, err)
					continue
				}
				h.exec(s.Key, "true")
			}
			h.restart()
			h.whole()
		})
	}
}

// database opens the store's file a second time.
func (h *house) database(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(h.dir, "records.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// smallDisk makes dir a disk of its own, with little room.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs the right to mount a file system")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}
