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

	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

// TestADatabaseThatTakesNothing has another process hold the database: every verb says so, nothing is lost or halfway, and all works again
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
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
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
					_, err := h.engine.Update(ctx, alice, "up", update.Patch{CPU: ptr(2.0)})
					return err
				},
				"exec": func(ctx context.Context) error {
					_, err := h.engine.Exec(ctx, alice, "up", engine.ExecRequest{Shell: "rm file"}, nil)
					return err
				},
				"upload": func(ctx context.Context) error {
					_, _, err := h.files.WriteFile(ctx, alice, "up", "other", strings.NewReader("x"), sandbox.WriteFileOptions{})
					return err
				},
			} {
				if verb == "exec" || verb == "upload" {
					continue // they wait in line for what the others still try, whoever went away
				}
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				err := do(ctx)
				cancel()
				switch fault.Of(err) {
				case fault.Unavailable, fault.Full, fault.Timeout, fault.Canceled:
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

// fillDisk fills the disk of a directory to the last byte, and returns what frees it.
func fillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
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
}

// TestTheDiskOfTheRecordsIsFull has nothing be begun, and all be stopped and deleted.
func TestTheDiskOfTheRecordsIsFull(t *testing.T) {
	dir := t.TempDir()
	smallDisk(t, dir)
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "host")); err != nil { // the disk of the records alone is full
		t.Fatal(err)
	}
	h := open(t, dir)
	const boxes = 40
	var ids []sandbox.ID
	for range boxes {
		ids = append(ids, h.create(engine.CreateRequest{}).ID)
	}
	kept := h.create(engine.CreateRequest{Key: "kept"})
	snap, err := h.engine.CreateSnapshot(t.Context(), alice, "kept", engine.SnapshotRequest{Name: "s"})
	if err != nil && !fault.Is(err, fault.Unsupported) {
		t.Fatal(err)
	}
	running, err := h.engine.StartProcess(t.Context(), alice, "kept", engine.StartRequest{Shell: "read line; exit 7", StreamStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	held := h.create(engine.CreateRequest{Key: "held"})
	down := h.create(engine.CreateRequest{Key: "down"})
	if _, err := h.engine.Stop(t.Context(), alice, "down"); err != nil {
		t.Fatal(err)
	}
	h.recorded()
	free := fillDisk(t, dir)
	until(t, "the full disk is noticed", func() bool { return fault.Is(h.engine.Health(), fault.Full) })
	if err := h.engine.Ready(); err != nil {
		t.Error("the engine serves still:", err)
	}
	for range 2 {
		if s, err := h.engine.Pause(t.Context(), alice, "held"); err != nil || s.State != sandbox.Paused {
			t.Errorf("pause: %+v, %v", s, err)
		}
	}
	for verb, do := range map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error {
			_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Key: "new"})
			return err
		},
		"start":  func(ctx context.Context) error { _, err := h.engine.Start(ctx, alice, "down"); return err },
		"resume": func(ctx context.Context) error { _, err := h.engine.Resume(ctx, alice, "held"); return err },
		// It is not stopped for it.
		"restart": func(ctx context.Context) error { _, err := h.engine.Restart(ctx, alice, "kept"); return err },
		"update": func(ctx context.Context) error {
			_, err := h.engine.Update(ctx, alice, "kept", update.Patch{CPU: ptr(2.0)})
			return err
		},
		"exec": func(ctx context.Context) error {
			_, err := h.engine.Exec(ctx, alice, "kept", engine.ExecRequest{Shell: "touch begun"}, nil)
			return err
		},
		"upload": func(ctx context.Context) error {
			_, _, err := h.files.WriteFile(ctx, alice, "kept", "begun", strings.NewReader("x"), sandbox.WriteFileOptions{})
			return err
		},
		"download": func(ctx context.Context) error {
			_, r, err := h.files.ReadFile(ctx, alice, "kept", "/etc/hostname", sandbox.ReadFileOptions{})
			if err == nil {
				_ = r.Close()
			}
			return err
		},
		"snapshot": func(ctx context.Context) error {
			_, err := h.engine.CreateSnapshot(ctx, alice, "kept", engine.SnapshotRequest{})
			return err
		},
		"volume": func(ctx context.Context) error {
			_, err := h.volumes().CreateVolume(ctx, alice, volume.Request{Name: "v"})
			return err
		},
		"secret": func(ctx context.Context) error {
			_, err := h.secrets().SetSecret(ctx, alice, "kept", secrets.Request{Name: "S", Value: "vvvvvvvvvv"})
			return err
		},
		"preview": func(ctx context.Context) error {
			_, err := h.ports.CreatePreview(ctx, alice, "kept", 80, 0)
			return err
		},
	} {
		err := do(t.Context())
		if e := fault.As(err); err == nil || e.Code != fault.Full || e.Disk != fault.RecordsDisk {
			t.Errorf("%s: got %v, want that the disk of the records is full", verb, err)
		}
	}
	if s := h.get(kept.ID); s.State != sandbox.Running {
		t.Errorf("after a restart that was refused it is %s", s.State)
	}
	if err := h.engine.KillProcess(t.Context(), alice, "kept", running.ID); err != nil {
		t.Error("kill:", err)
	}
	for n, id := range ids {
		if n%2 == 0 {
			if s, err := h.engine.Stop(t.Context(), alice, string(id)); err != nil || s.State != sandbox.Stopped {
				t.Fatalf("stop of the %d. sandbox: %+v, %v", n, s, err)
			}
		}
		if err := h.engine.Delete(t.Context(), alice, string(id)); err != nil {
			t.Fatalf("delete of the %d. sandbox: %v", n, err)
		}
		if got := types(h.events(id)); got[len(got)-1] != sandbox.EventDeleted {
			t.Fatalf("events of the %d. sandbox: %v", n, got)
		}
	}
	if snap != nil {
		if err := h.engine.DeleteSnapshot(t.Context(), alice, "", string(snap.ID)); err != nil {
			t.Error("delete of a snapshot:", err)
		}
	}
	h.restart() // on the full disk
	until(t, "the full disk is noticed", func() bool { return fault.Is(h.engine.Health(), fault.Full) })
	if _, err := h.engine.Stop(t.Context(), alice, "kept"); err != nil {
		t.Error("stop after a restart:", err)
	}
	free()
	until(t, "the room is noticed", func() bool { return h.engine.Health() == nil })
	for _, s := range []*sandbox.Sandbox{kept, held, down} {
		if _, err := h.engine.Start(t.Context(), alice, s.Key); err != nil {
			t.Error(err)
		}
		h.exec(s.Key, "test ! -e begun")
	}
	h.whole()
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
	skiptest.WithoutRoot(t, "it mounts a file system")
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}
