// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// leave makes what a server that was killed leaves: groups, spares, and one of a sandbox.
func leave(t *testing.T, namespace, whose string) (paths []string) {
	t.Helper()
	d, err := Open(Options{Namespace: namespace, Owner: whose})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.MakeSpares(); err != nil {
		t.Fatal(err)
	}
	g, err := d.Create("fourletters", Limits{}, owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Prepare(); err != nil {
		t.Fatal(err)
	}
	for h := range d.hierarchies {
		paths = append(paths, filepath.Join(h.path, top, namespace))
		unix.Close(h.dir) // as the end of a process does
		h.dir = -1
	}
	t.Cleanup(func() {
		d, err := Open(Options{Namespace: namespace})
		if err != nil {
			t.Error(err)
			return
		}
		if g, err := d.Open("fourletters"); err == nil {
			if err := g.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return paths
}

func unused(t *testing.T, namespace string) (owner string, found bool) {
	t.Helper()
	err := EachUnused(func(u *Unused) bool {
		if u.Namespace == namespace {
			owner, found = u.Owner, true
		}
		return !found
	})
	if err != nil {
		t.Fatal(err)
	}
	return owner, found
}

func TestUnusedNamespaceIsRemoved(t *testing.T) {
	needTrusted(t)
	namespace := randomName()
	paths := leave(t, namespace, "/var/lib/gone")
	if owner, found := unused(t, namespace); !found || owner != "/var/lib/gone" {
		t.Fatalf("found %v, of %q", found, owner)
	}
	err := EachUnused(func(u *Unused) bool {
		if u.Namespace == namespace {
			if err := u.Remove(); err != nil {
				t.Error(err)
			}
		}
		return u.Namespace != namespace
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestUsedNamespaceIsLeft(t *testing.T) {
	needTrusted(t)
	t.Run("Unmarked", func(t *testing.T) {
		namespace := randomName()
		leave(t, namespace, "")
		if _, found := unused(t, namespace); found {
			t.Error("a namespace of unknown origin counts as unused")
		}
	})
	t.Run("Open", func(t *testing.T) {
		namespace := randomName()
		leave(t, namespace, "/var/lib/gone")
		d, err := Open(Options{Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		if _, found := unused(t, namespace); found {
			t.Error("a namespace that a driver has open counts as unused")
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if _, found := unused(t, namespace); !found {
			t.Error("a namespace that was closed does not count as unused")
		}
	})
	t.Run("Process", func(t *testing.T) {
		namespace := randomName()
		for _, path := range leave(t, namespace, "/var/lib/gone") {
			for _, group := range []string{"", "fourletters"} {
				sleeper := exec.CommandContext(t.Context(), "sleep", "1000")
				if err := sleeper.Start(); err != nil {
					t.Fatal(err)
				}
				err := os.WriteFile(filepath.Join(path, group, "cgroup.procs"), []byte(strconv.Itoa(sleeper.Process.Pid)), 0)
				if _, found := unused(t, namespace); err == nil && found {
					t.Errorf("a process is in %s/%s, and it counts as unused", path, group)
				}
				_ = sleeper.Process.Kill()
				_ = sleeper.Wait()
				if err != nil && !errors.Is(err, unix.EBUSY) { // v2 takes none beside controllers
					t.Error(err)
				}
			}
		}
	})
}

// TestOpenWhileRemoved opens a namespace again and again while it is removed again and again:
// what was opened can be used.
func TestOpenWhileRemoved(t *testing.T) {
	needTrusted(t)
	namespace := randomName()
	leave(t, namespace, "/var/lib/gone")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = EachUnused(func(u *Unused) bool {
				if u.Namespace == namespace {
					_ = u.Remove()
				}
				return u.Namespace != namespace
			})
		}
	}()
	for range 50 {
		d, err := Open(Options{Namespace: namespace, Owner: "/var/lib/gone"})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.info.Err(PIDs); err != nil {
			t.Fatal(err)
		}
		if err := d.MakeSpares(); err != nil {
			t.Error(err)
		}
		for h := range d.hierarchies {
			unix.Close(h.dir)
			h.dir = -1
		}
	}
	close(stop)
	<-done
}

// TestWhoLooksIsWaitedFor has a driver be alone that closes while somebody looks whether its
// namespace is unused, and not while another driver has it open.
func TestWhoLooksIsWaitedFor(t *testing.T) {
	path := t.TempDir()
	open := func() int {
		fd, err := openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	own, looking := open(), open()
	if err := lock(looking, unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	time.AfterFunc(20*time.Millisecond, func() { released <- lock(looking, unix.LOCK_UN) })
	if !alone(own) {
		t.Error("who looks counts as another driver")
	}
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lock(own, unix.LOCK_SH), lock(looking, unix.LOCK_SH)); err != nil {
		t.Fatal(err)
	}
	if alone(own) {
		t.Error("another driver counts as gone")
	}
}

// TestSecondDriverLeavesGroups closes a driver of a namespace that another has open.
func TestSecondDriverLeavesGroups(t *testing.T) {
	d := openHost(t)
	if err := d.MakeSpares(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(Options{Namespace: d.namespace})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for h := range d.hierarchies {
		names, err := children(h.dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		if !h.v2 && len(names) != 2*maxSpares { // of commands and of agents
			t.Errorf("%s has only %q", h.path, names)
		}
	}
	a := take(t, d, "abcd")
	_ = within(t, a, "/bin/true").Wait()
	if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func needTrusted(t *testing.T) {
	t.Helper()
	d := openHost(t, PIDs)
	for h := range d.hierarchies {
		if err := unix.Fsetxattr(h.dir, ownerMark, []byte("x"), 0); err != nil {
			t.Skip("no attributes of groups: ", err)
		}
	}
}
