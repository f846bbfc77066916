// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package accounts_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/accounts"
	"sandpit.dev/internal/skiptest"
)

// What Suits says yes to can be made, in the same root, and what is refused it does not say yes to.
func TestWhatSuitsCanBeMade(t *testing.T) {
	t.Parallel()
	skiptest.WithoutRoot(t, "files are given to others")
	const uid = 1000
	prepare := func(t *testing.T) int {
		dir, root := tree(t, map[string]string{"etc/passwd": passwd, "etc/group": "sandbox:x:1000:\n", "srv/file": "x"})
		at := func(name string) string { return filepath.Join(dir, name) }
		err := errors.Join(
			os.Chmod(dir, 0o755),
			os.MkdirAll(at("home/mine/deep"), 0o755), os.Chown(at("home/mine"), uid, uid), os.Chown(at("home/mine/deep"), uid, uid),
			os.Mkdir(at("home/his"), 0o755), os.Chown(at("home/his"), 1001, 1001),
			os.Mkdir(at("closed"), 0o700), os.Mkdir(at("closed/in"), 0o755), os.Chown(at("closed/in"), uid, uid),
			os.Mkdir(at("shut"), 0o600), os.Chown(at("shut"), uid, uid),
			os.Symlink("home/mine", at("link")), os.Symlink("/home/mine", at("far")), os.Symlink("nowhere", at("dangling")),
			unix.Mkfifo(at("fifo"), 0o666),
		)
		if err != nil {
			t.Fatal(err)
		}
		return root
	}
	for _, c := range []struct {
		name, home, workdir string
		suits, made         bool
	}{
		{"dev", "/home/dev", "/home/dev", true, true},
		{"dev", "/home/dev", "/home/dev/src", true, true},
		{"dev", "/srv/a/b", "/srv/a", true, true},
		{"dev", "/home/mine", "/home/mine/deep/er", true, true},
		{"sandbox", "/new/place", "/other", true, true},
		{"bin", "/home/dev", "/srv/app", false, false},
		{"root", "/home/dev", "/srv/app", false, false},
		{"dev", "/home/his", "/srv/app", false, false},
		{"dev", "/home/his/x", "/srv/app", true, true}, // a new one, in a directory that may be entered
		{"dev", "/home", "/srv/app", false, false},
		{"dev", "/srv/file", "/srv/app", false, false},
		{"dev", "/home/dev", "/srv/file/x", false, false},
		{"dev", "/link", "/srv/app", false, false},
		{"dev", "/far/x", "/srv/app", false, false},
		{"dev", "/home/dev", "/dangling", false, false},
		{"dev", "/home/dev", "/dangling/x", false, false},
		{"dev", "/fifo", "/srv/app", false, false},
		{"dev", "/home/dev", "/closed/in", false, true}, // which who enters it finds out
		{"dev", "/home/dev", "/closed/new", false, true},
		{"dev", "/home/dev", "/shut", false, true},
		{"dev", "/home/../etc", "/srv/app", false, false},
		{"dev", "home/dev", "/srv/app", false, true},
		{"dev", "/", "/srv/app", false, false},
		{"dev", "/home/dev", "/" + strings.Repeat("x", 300), false, false},
	} {
		root := prepare(t)
		if got := accounts.Suits(root, uid, uid, c.name, c.home, c.workdir); got != c.suits {
			t.Errorf("%q at %.40q in %.40q suits: %v", c.name, c.home, c.workdir, got)
		}
		err := accounts.Rename(root, uid, c.name, c.home)
		for _, dir := range accounts.Ordered(c.home, c.workdir) {
			if fd, owned := accounts.Own(root, "account.home", dir, uid, uid); owned == nil {
				_ = unix.Close(fd)
			} else {
				err = errors.Join(err, owned)
			}
		}
		if made := err == nil; made != c.made {
			t.Errorf("%q at %.40q in %.40q: %v", c.name, c.home, c.workdir, err)
		}
	}
}
