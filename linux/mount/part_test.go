// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mount_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/mount"
)

// A part takes its whole's place in another namespace, and no link leads out of a whole, or to another place.
func TestArrange(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	dir := t.TempDir()
	place := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"whole", "at", "other", "kept"} {
		if err := os.Mkdir(place(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	type step struct {
		place mount.Place
		want  string // what is at its place then; "": it is refused
	}
	inNamespace(t, func(ns *os.File) error {
		for _, s := range []step{
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "a/b", ReadOnly: true}, "in a/b"},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "a"}, "in a"},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "out"}, ""},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "up/x"}, ""},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "in"}, ""},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "file"}, ""},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "other"}, ""}, // another file system
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "missing"}, ""},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "out/x", Make: true}, ""},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "in/x", Make: true}, ""},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "file/x", Make: true}, ""},
			{mount.Place{At: place("at"), Whole: place("whole"), Sub: "other/x", Make: true}, ""},
			{mount.Place{At: place("link"), Whole: place("whole"), Sub: "a"}, ""},
		} {
			if err := arranged(ns, place, s.place, s.want); err != nil {
				t.Errorf("%+v: %v", s.place, err)
			}
		}
		return nil
	})
}

// What is missing of a part is made as the one above is: of its owner, who may write there.
func TestArrangeMakes(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	dir := t.TempDir()
	whole, at := filepath.Join(dir, "whole"), filepath.Join(dir, "at")
	if err := errors.Join(os.Mkdir(whole, 0o755), os.Mkdir(at, 0o755)); err != nil {
		t.Fatal(err)
	}
	inNamespace(t, func(ns *os.File) error {
		for _, c := range []struct {
			uid  int
			mode os.FileMode
			made bool
		}{{4711, 0o755, true}, {0, 0o755, true}, {4711, 0o555, false}} {
			if err := errors.Join(unix.Mount("tmpfs", whole, "tmpfs", 0, "size=1m"), os.Chmod(whole, c.mode), os.Chown(whole, c.uid, c.uid)); err != nil {
				return err
			}
			err := mount.Arrange(ns, unix.MOUNT_ATTR_NOSUID, []mount.Place{{At: at, Whole: whole, Sub: "a/b", Make: true, ReadOnly: true}})
			if !c.made {
				if err == nil {
					t.Errorf("a directory was made where its owner may write none")
				}
				return unix.Unmount(whole, unix.MNT_DETACH)
			}
			if err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Stat(at, &st); err != nil {
				return err
			}
			if int(st.Uid) != c.uid || int(st.Gid) != c.uid || st.Mode&0o7777 != 0o755 {
				t.Errorf("below one of user %d it is of user %d and group %d, mode %o", c.uid, st.Uid, st.Gid, st.Mode)
			}
			if err := os.Mkdir(filepath.Join(at, "x"), 0o755); !errors.Is(err, unix.EROFS) {
				t.Errorf("in what is to read alone: %v", err)
			}
			if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
				return err
			}
		}
		return nil
	})
}

// inNamespace runs fn on a thread with a mount namespace of its own.
func inNamespace(t *testing.T, fn func(ns *os.File) error) {
	t.Helper()
	result := make(chan error, 1)
	mount.OnThread(func() {
		result <- func() error {
			if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
				return err
			}
			ns, err := os.Open("/proc/thread-self/ns/mnt")
			if err != nil {
				return err
			}
			defer func() { _ = ns.Close() }()
			return fn(ns)
		}()
	})
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

// A directory that somebody exchanges with a link all the time is mounted, or nothing is.
func TestArrangeAgainstExchanges(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	dir := t.TempDir()
	place := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Mkdir(place("whole"), 0o755), os.Mkdir(place("at"), 0o755), os.MkdirAll(place("kept/b"), 0o755),
		os.WriteFile(place("kept/b/name"), []byte("the host's"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	mounted, refused := 0, 0
	inNamespace(t, func(ns *os.File) error {
		for range 300 {
			for _, err := range []error{
				unix.Mount("tmpfs", place("whole"), "tmpfs", 0, "size=1m"), os.MkdirAll(place("whole/a/b"), 0o755),
				os.WriteFile(place("whole/a/b/name"), []byte("in a/b"), 0o600), os.Symlink(place("kept"), place("whole/link")),
			} {
				if err != nil {
					return err
				}
			}
			whole, err := os.Open(place("whole"))
			if err != nil {
				return err
			}
			ended, begun, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for n := 0; ; n++ {
					select {
					case <-ended:
						return
					default:
						_ = unix.Renameat2(int(whole.Fd()), "a", int(whole.Fd()), "link", unix.RENAME_EXCHANGE)
					}
					if n == 0 {
						close(begun)
					}
				}
			}()
			<-begun
			err = mount.Arrange(ns, unix.MOUNT_ATTR_NOSUID, []mount.Place{{At: place("at"), Whole: place("whole"), Sub: "a/b"}})
			close(ended)
			<-done
			_ = whole.Close()
			switch {
			case err == nil:
				mounted++
				if got, err := os.ReadFile(place("at/name")); err != nil || string(got) != "in a/b" {
					t.Errorf("it has %q, %v", got, err)
				}
				err = unix.Unmount(place("at"), 0)
			case errors.As(err, new(*mount.Blocked)):
				refused++
				err = unix.Unmount(place("whole"), unix.MNT_DETACH)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	t.Logf("%d were mounted, %d refused", mounted, refused)
	if mounted == 0 || refused == 0 {
		t.Errorf("of 300 %d were mounted and %d refused: nothing was exchanged at the right time", mounted, refused)
	}
}

// arranged tries one in a namespace that is the thread's own.
func arranged(ns *os.File, place func(string) string, p mount.Place, want string) error {
	if err := unix.Mount("tmpfs", place("whole"), "tmpfs", 0, "size=1m"); err != nil {
		return err
	}
	for _, err := range []error{
		os.MkdirAll(place("whole/a/b"), 0o755), os.Mkdir(place("whole/other"), 0o755),
		os.WriteFile(place("whole/a/name"), []byte("in a"), 0o600), os.WriteFile(place("whole/a/b/name"), []byte("in a/b"), 0o600), os.WriteFile(place("whole/file"), nil, 0o600),
		os.Symlink("/etc", place("whole/out")), os.Symlink("../kept", place("whole/up")), os.Symlink("a", place("whole/in")),
		unix.Mount("tmpfs", place("whole/other"), "tmpfs", 0, "size=1m"),
	} {
		if err != nil {
			return err
		}
	}
	if err := os.Symlink(place("kept"), place("link")); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	defer func() {
		for unix.Unmount(place("at"), unix.MNT_DETACH) == nil {
		}
		for unix.Unmount(place("whole"), unix.MNT_DETACH) == nil {
		}
	}()
	err := mount.Arrange(ns, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, []mount.Place{p})
	if want == "" {
		if blocked := new(mount.Blocked); !errors.As(err, &blocked) {
			return errors.Join(errors.New("it was not refused as blocked"), err)
		}
		if names, err := os.ReadDir(place("at")); err != nil || len(names) != 0 {
			return errors.Join(errors.New("something is there"), err)
		}
		return nil
	}
	for range 2 { // the second finds all done
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(filepath.Join(p.At, "name")); err != nil || string(got) != want {
			return errors.Join(errors.New("it has "+string(got)), err)
		}
		var st unix.Statfs_t
		if err := unix.Statfs(p.At, &st); err != nil {
			return err
		}
		if flags := st.Flags; flags&unix.ST_NOSUID == 0 || flags&unix.ST_NODEV == 0 || flags&unix.ST_RDONLY != 0 != p.ReadOnly {
			return errors.New("it has other attributes")
		}
		if _, err := os.Lstat(place("whole/file")); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(errors.New("the whole is there"), err)
		}
		err = mount.Arrange(ns, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, []mount.Place{p})
	}
	return err
}
