// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seed_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/accounts"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime/native/seed"
)

const uid = 1000

// image makes a root with lists and directories of several owners.
func image(t *testing.T) string {
	t.Helper()
	skiptest.WithoutRoot(t, "files are given to others, and an overlay is mounted")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.Chmod(dir, 0o755),
		os.MkdirAll(at("etc"), 0o755), os.MkdirAll(at("home/sandbox"), 0o755), os.MkdirAll(at("data/mine"), 0o755),
		os.WriteFile(at("etc/passwd"), []byte("root:x:0:0::/root:/bin/sh\nsandbox:x:1000:1000::/home/sandbox:/bin/sh\n"), 0o644),
		os.WriteFile(at("etc/group"), []byte("root:x:0:\nsandbox:x:1000:\n"), 0o640),
		os.WriteFile(at("etc/other"), []byte("other"), 0o600),
		os.Chown(at("etc/group"), 0, 42), os.Chmod(at("etc/group"), 0o640),
		os.Chmod(at("home"), 0o751|fs.ModeSetgid), os.Chown(at("home/sandbox"), uid, uid), os.Chown(at("data/mine"), uid, uid),
		os.Chown(at("data"), 7, 8), os.Chmod(at("data"), 0o1777|fs.ModeSticky),
		unix.Setxattr(at("data"), "user.kept", []byte("value"), 0),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func root(t *testing.T, dir string) int {
	t.Helper()
	fd, err := accounts.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// over mounts an overlay over an image until the test ends.
func over(t *testing.T, lower, upper string) string {
	t.Helper()
	work, merged := t.TempDir(), t.TempDir()
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,index=on,nfs_export=on", lower, upper, work)
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(merged, 0); err != nil {
			t.Error(err)
		}
	})
	return merged
}

// listing is a tree in words: each path with its mode, owner, attribute and contents.
func listing(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `cd "$1" && find . -printf '%p %M %U %G\n' | sort && getfattr -R -d . 2>/dev/null; find etc -type f | sort | xargs head -c 1000`, "sh", dir).CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	return string(out)
}

func TestASeedIsWhatTheAgentWouldMake(t *testing.T) {
	for _, c := range []struct{ name, home, workdir string }{
		{"dev", "/home/dev", "/srv/app/src"},
		{"dev", "/home/dev", "/home/dev"},
		{"dev", "/srv/a/b", "/srv/a"},
		{"dev", "/srv/a", "/srv/a/b/c"},
		{"dev", "/data/mine/x/y", "/data/new"},
		{"sandbox", "/home/sandbox", "/opt/x"},
		{"sandbox", "/etc/home", "/etc/work"},
	} {
		lower := image(t)
		upper := t.TempDir()
		if err := os.Chmod(upper, 0o755); err != nil {
			t.Fatal(err)
		}
		s, err := seed.Account(root(t, lower), uid, c.name, c.home, c.workdir)
		if err != nil || s == nil {
			t.Fatal(c, s, err)
		}
		if err := s.Write(root(t, upper)); err != nil {
			t.Fatal(c, err)
		}
		seeded := over(t, lower, upper)
		got := listing(t, seeded)

		empty := t.TempDir()
		if err := os.Chmod(empty, 0o755); err != nil {
			t.Fatal(err)
		}
		made := over(t, lower, empty)
		fd := root(t, made)
		for _, dir := range accounts.Ordered(c.home, c.workdir) {
			own, err := accounts.Own(fd, "account.home", dir, uid, uid)
			if err != nil {
				t.Fatal(err)
			}
			_ = unix.Close(own)
		}
		if err := accounts.Rename(fd, uid, c.name, c.home); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(listing(t, made), got); diff != "" {
			t.Errorf("%+v (-agent +seed):\n%s", c, diff)
		}
		before := listing(t, seeded) // and then the agent has nothing left to do
		again := root(t, seeded)
		if r, err := accounts.Plan(again, uid, c.name, c.home); err != nil || r.Each(func(name, _ string) error { return errors.New(name) }) != nil {
			t.Errorf("%+v: the agent would write again: %v", c, err)
		}
		if diff := cmp.Diff(before, listing(t, seeded)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTheListsAreThereAsTheyAre(t *testing.T) {
	lower, upper := image(t), t.TempDir()
	if err := os.Chmod(upper, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := seed.Lists(root(t, lower))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(root(t, upper)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etc/passwd", "etc/group"} {
		was, werr := os.Stat(filepath.Join(lower, name))
		is, err := os.Stat(filepath.Join(upper, name))
		if err != nil || werr != nil || !was.ModTime().Equal(is.ModTime()) {
			t.Errorf("%s: %v, %v, %v %v", name, err, werr, was, is)
		}
	}
	if diff := cmp.Diff(listing(t, lower), listing(t, over(t, lower, upper))); diff != "" {
		t.Errorf("something is otherwise:\n%s", diff)
	}
	if err := s.Write(root(t, upper)); err == nil {
		t.Error("a layer that is not empty was written to")
	}
}

// An image is made by somebody: what is where the lists and the directories belong leads nowhere, and holds nobody up.
func TestNothingOfAnImageIsFollowed(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "passwd")
	if err := os.WriteFile(secret, []byte("secret:x:1:1::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	replace := func(name string, with func(at string) error) func(dir string) error {
		return func(dir string) error {
			at := filepath.Join(dir, name)
			return errors.Join(os.RemoveAll(at), with(at))
		}
	}
	linkTo := func(to string) func(string) error { return func(at string) error { return os.Symlink(to, at) } }
	for name, change := range map[string]func(dir string) error{
		"a list that is a link out":           replace("etc/passwd", linkTo(secret)),
		"a list that is a link in":            replace("etc/passwd", linkTo("other")),
		"a list that is a directory":          replace("etc/passwd", func(at string) error { return os.Mkdir(at, 0o755) }),
		"a list that is a pipe":               replace("etc/passwd", func(at string) error { return unix.Mkfifo(at, 0o666) }),
		"a list that is the null device":      replace("etc/passwd", func(at string) error { return unix.Mknod(at, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) }),
		"a list that is too long":             replace("etc/passwd", func(at string) error { return os.WriteFile(at, make([]byte, accounts.MaxFile+1), 0o644) }),
		"a directory of lists that leads out": replace("etc", linkTo(outside)),
		"homes that lead out":                 replace("home", linkTo(outside)),
		"a workdir's place that leads out":    replace("srv", linkTo(outside)),
		"homes that are a file":               replace("home", func(at string) error { return os.WriteFile(at, nil, 0o644) }),
	} {
		dir := image(t)
		if err := change(dir); err != nil {
			t.Fatal(name, err)
		}
		fd := root(t, dir)
		if s, err := seed.Account(fd, uid, "dev", "/home/dev", "/srv/app"); s != nil || err != nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
		upper := t.TempDir()
		lists, err := seed.Lists(fd)
		if err == nil {
			err = lists.Write(root(t, upper))
		}
		if err != nil {
			t.Errorf("%s: the lists: %v", name, err)
		}
		if text, _ := os.ReadFile(filepath.Join(upper, "etc/passwd")); strings.Contains(string(text), "secret") {
			t.Errorf("%s: a file of the host's is in the layer", name)
		}
		if left, _ := os.ReadDir(outside); len(left) != 1 {
			t.Errorf("%s: written outside: %v", name, left)
		}
	}
}

// An image without lists knows no names, and has its directories all the same.
func TestAnImageWithoutLists(t *testing.T) {
	dir, upper := image(t), t.TempDir()
	if err := os.RemoveAll(filepath.Join(dir, "etc")); err != nil {
		t.Fatal(err)
	}
	s, err := seed.Account(root(t, dir), uid, "dev", "/home/dev", "/srv")
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	if err := s.Write(root(t, upper)); err != nil {
		t.Fatal(err)
	}
	if names, _ := os.ReadDir(upper); len(names) != 2 || names[0].Name() != "home" || names[1].Name() != "srv" {
		t.Errorf("made: %v", names)
	}
}
