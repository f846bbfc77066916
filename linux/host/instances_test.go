// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// inMemory skips a test where the host has no file system in memory.
func inMemory(t *testing.T) {
	t.Helper()
	for _, base := range memoryDirs {
		var st unix.Statfs_t
		if unix.Statfs(base, &st) == nil && st.Type == unix.TMPFS_MAGIC && unix.Access(base, unix.W_OK) == nil {
			return
		}
	}
	t.Skipf("none of %v is a file system in memory that can be written", memoryDirs)
}

func TestInstances(t *testing.T) {
	inMemory(t)
	open := func(t *testing.T, dir, boot string) *Instances {
		t.Helper()
		i, err := OpenInstances(dir, PathNamespace(dir), boot)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = i.Close() })
		return i
	}
	age := func(t *testing.T, memory string) {
		t.Helper()
		long := unix.NsecToTimespec(time.Now().Add(-2 * sweepAge).UnixNano())
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, memory+ofSuffix, []unix.Timespec{long, long}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
	}
	leave := func(t *testing.T, i *Instances) {
		t.Helper()
		if err := i.Symlink("told", "a.state"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(i.memory); _ = os.Remove(i.memory + ofSuffix) })
	}
	t.Run("AreInMemoryAndFoundAgain", func(t *testing.T) {
		dir := t.TempDir()
		first := open(t, dir, "boot1")
		leave(t, first)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		again := open(t, dir, "boot1")
		if again.memory != first.memory || again.rebooted {
			t.Errorf("%q, then %q, rebooted %v", first.memory, again.memory, again.rebooted)
		}
		if got, err := os.Readlink(filepath.Join(dir, "instances", "a.state")); got != "told" {
			t.Errorf("by way of the data directory: %q, %v", got, err)
		}
	})
	t.Run("NothingIsLeftOfEmptyOnes", func(t *testing.T) {
		dir := t.TempDir()
		i := open(t, dir, "boot1")
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{i.memory, i.memory + ofSuffix, filepath.Join(dir, "instances")} {
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("%s: %v, want that it does not exist", path, err)
			}
		}
	})
	t.Run("OfAnotherBootAreNewAndSayWhy", func(t *testing.T) {
		dir := t.TempDir()
		first := open(t, dir, "boot1")
		leave(t, first)
		again := open(t, dir, "boot2")
		if again.memory == first.memory || !again.rebooted {
			t.Errorf("%q again, rebooted %v", again.memory, again.rebooted)
		}
	})
	t.Run("OfACopyOfTheDirectoryAreNotTheOriginals", func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		first := open(t, dir, "boot1")
		leave(t, first)
		if err := os.Symlink(first.memory, filepath.Join(other, "instances")); err != nil {
			t.Fatal(err)
		}
		if copied := open(t, other, "boot1"); copied.memory == first.memory {
			t.Error("two data directories share the sandboxes of one")
		}
	})
	t.Run("ThatOthersCanWriteAreRefused", func(t *testing.T) {
		dir := t.TempDir()
		first := open(t, dir, "boot1")
		leave(t, first)
		if err := os.Chmod(first.memory, 0o777); err != nil {
			t.Fatal(err)
		}
		if i, err := OpenInstances(dir, PathNamespace(dir), "boot1"); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "only this server's user") {
			t.Errorf("got %v, %v", i, err)
		}
	})
	t.Run("OfAnEarlierVersionStayWhereTheyAre", func(t *testing.T) {
		dir := t.TempDir()
		old := filepath.Join(dir, "instances")
		if err := os.Mkdir(old, 0o700); err != nil {
			t.Fatal(err)
		}
		state := filepath.Join(old, "a.state")
		if err := os.Symlink("told", state); err != nil {
			t.Fatal(err)
		}
		if i := open(t, dir, "boot1"); i.memory != "" {
			t.Errorf("those that are up are left for %q", i.memory)
		}
		if err := os.Remove(state); err != nil {
			t.Fatal(err)
		}
		if i := open(t, dir, "boot1"); i.memory == "" {
			t.Error("an empty directory of an earlier version stays in use")
		}
	})
	t.Run("OfADirectoryThatIsGoneAreTakenAway", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "deleted")
		first := open(t, dir, "boot1")
		leave(t, first)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		kept := open(t, t.TempDir(), "boot1")
		leave(t, kept)
		young := open(t, filepath.Join(t.TempDir(), "begins"), "boot1")
		leave(t, young)
		if err := os.Remove(young.link); err != nil {
			t.Fatal(err)
		}
		age(t, first.memory)
		age(t, kept.memory)
		open(t, t.TempDir(), "boot1")
		for path, there := range map[string]bool{first.memory: false, first.memory + ofSuffix: false, kept.memory: true, kept.memory + ofSuffix: true, young.memory: true} {
			if _, err := os.Lstat(path); (err == nil) != there {
				t.Errorf("%s: %v, want that it is there: %v", path, err, there)
			}
		}
	})
	t.Run("WhoseProcessesLiveStayWithoutTheirDirectory", func(t *testing.T) {
		boot, err := BootID()
		if err != nil {
			t.Fatal(err)
		}
		s, err := StateOf(os.Getpid(), 0, boot)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "deleted")
		first := open(t, dir, boot)
		t.Cleanup(func() { _ = os.RemoveAll(first.memory); _ = os.Remove(first.memory + ofSuffix) })
		if err := s.Write(first.Root, "a"); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		age(t, first.memory)
		open(t, t.TempDir(), boot)
		if _, err := os.Lstat(first.memory); err != nil {
			t.Errorf("the files of a sandbox that runs are gone: %v", err)
		}
	})
	t.Run("MadeByAServerThatEndedInBetweenAreTakenAway", func(t *testing.T) {
		dir := t.TempDir()
		first := open(t, dir, "boot1")
		base := filepath.Dir(first.memory)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		half := filepath.Join(base, memoryName(PathNamespace(dir))+"boot1-half")
		if err := os.Symlink(dir, half+ofSuffix); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(half, 0o700); err != nil {
			t.Fatal(err)
		}
		age(t, half)
		open(t, dir, "boot1")
		for _, path := range []string{half, half + ofSuffix} {
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				_ = os.Remove(path)
				t.Errorf("%s: %v, want that it does not exist", path, err)
			}
		}
	})
	t.Run("ANameThatLeadsOutIsNotFollowed", func(t *testing.T) {
		first := open(t, t.TempDir(), "boot1")
		victim := t.TempDir()
		if err := os.WriteFile(filepath.Join(victim, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		gone := filepath.Join(t.TempDir(), "gone")
		trap := filepath.Join(filepath.Dir(first.memory), memoryName(PathNamespace(gone))+"boot1-trap")
		for link, to := range map[string]string{trap: victim, trap + ofSuffix: gone} {
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(link) })
		}
		age(t, trap)
		open(t, t.TempDir(), "boot1")
		if _, err := os.Stat(filepath.Join(victim, "file")); err != nil {
			t.Errorf("what a link leads to was removed: %v", err)
		}
	})
}
