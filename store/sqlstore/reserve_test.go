// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ownDisk mounts a file system of 320 MB.
func ownDisk(t *testing.T, kind string) string {
	t.Helper()
	skiptest.WithoutRoot(t, "it mounts a file system")
	dir, run := t.TempDir(), func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, out)
		}
	}
	if kind == "tmpfs" {
		run("mount", "-t", "tmpfs", "-o", "size=320m", "tmpfs", dir)
	} else {
		mkfs, err := exec.LookPath("mkfs." + kind)
		if err != nil {
			t.Skip("needs mkfs." + kind)
		}
		disk := filepath.Join(t.TempDir(), "disk")
		f, err := os.Create(disk)
		if err == nil {
			err = errors.Join(f.Truncate(320<<20), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		run(mkfs, "-q", disk)
		run("mount", "-o", "loop", disk, dir)
	}
	t.Cleanup(func() { run("umount", "-l", dir) })
	return dir
}

func TestAFullDiskHasAReserve(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			dir := ownDisk(t, kind)
			s, err := Open(t.Context(), Options{Path: filepath.Join(dir, "sandpit.db")})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			if err := s.Room(); err != nil {
				t.Fatal(err)
			}
			var boxes []*sandbox.Sandbox
			for range 600 {
				b := benchSandbox()
				boxes = append(boxes, b)
				update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(b) })
			}
			ballast, err := os.Create(filepath.Join(dir, "ballast"))
			if err != nil {
				t.Fatal(err)
			}
			fill := func() { // also what the log frees
				t.Helper()
				var err error
				for err == nil {
					_, err = ballast.Write(make([]byte, 4096))
				}
				if !errors.Is(err, unix.ENOSPC) {
					t.Fatal(err)
				}
			}
			fill()
			waitRoom(t, s, false)
			if e := fault.As(s.Room()); e.Code != fault.Full || e.Disk != fault.RecordsDisk || e.Remedy == "" {
				t.Errorf("got %v, want that the disk of the records is full, and what to do", e)
			}
			for n, b := range boxes {
				if n%20 == 0 {
					fill()
				}
				for _, kind := range []sandbox.EventType{sandbox.EventStopped, sandbox.EventDeleted} {
					err := s.Update(t.Context(), func(tx store.Tx) error {
						ev := &sandbox.Event{Sandbox: b.ID, Project: b.Project, Type: kind, At: time.Now(), Detail: fmt.Sprint("number ", n)}
						if err := tx.Events().Append(ev); err != nil || kind == sandbox.EventStopped {
							return errors.Join(err, tx.Sandboxes().Update(b))
						}
						return tx.Sandboxes().Delete(b.ID)
					})
					if err != nil {
						t.Fatalf("%s of the %d. sandbox: %v", kind, n, err)
					}
				}
			}
			if err := errors.Join(ballast.Close(), os.Remove(ballast.Name())); err != nil {
				t.Fatal(err)
			}
			waitRoom(t, s, true)
		})
	}
}

func waitRoom(t *testing.T, s *Store, want bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); (s.Room() == nil) != want; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: room %v; got %v", want, s.Room())
		}
	}
}
