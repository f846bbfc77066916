// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

// leave makes what a server that was killed leaves: groups of an agent, and of a sandbox.
func leave(t *testing.T, namespace, whose string) (paths []string) {
	t.Helper()
	d, err := Open(Options{Namespace: namespace, Owner: whose})
	if err != nil {
		t.Fatal(err)
	}
	take(t, d, "fourletters").CloseFiles()
	g, err := d.Create("fourletters", Limits{}, owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Prepare(); err != nil {
		t.Fatal(err)
	}
	paths = abandon(t, namespace)
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
		if a, err := d.Agent("abcd"); err != nil {
			t.Error(err)
		} else {
			a.CloseFiles()
		}
		abandon(t, namespace)
	}
	close(stop)
	<-done
}

// TestSecondDriverLeavesGroups closes a driver of a namespace that another has open.
func TestSecondDriverLeavesGroups(t *testing.T) {
	d := openHost(t)
	a := take(t, d, "abcd")
	second, err := Open(Options{Namespace: d.namespace})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range mounted(t) {
		group := filepath.Join(m.Path, cgroupfs.Top, d.namespace)
		if !m.V2 {
			group += "/_agent0"
		}
		if _, err := os.Stat(group); err != nil {
			t.Error(err)
		}
	}
	if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// needTrusted skips where groups have no attributes.
func needTrusted(t *testing.T) {
	t.Helper()
	d := openHost(t, PIDs)
	for _, m := range mounted(t) {
		path := filepath.Join(m.Path, cgroupfs.Top, d.namespace)
		if err := unix.Setxattr(path, cgroupfs.OwnerMark, []byte("x"), 0); err != nil {
			t.Skip("no attributes of groups: ", err)
		}
	}
}

// abandon closes all that a driver of the namespace has open, as the end of its process does.
func abandon(t *testing.T, namespace string) (paths []string) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path, err := os.Readlink("/proc/self/fd/" + f.Name())
		fd, _ := strconv.Atoi(f.Name())
		if err == nil && strings.HasSuffix(path, "/"+cgroupfs.Top+"/"+namespace) {
			paths = append(paths, path)
			unix.Close(fd)
		}
	}
	if len(paths) == 0 {
		t.Fatal("no driver has it open")
	}
	return paths
}
