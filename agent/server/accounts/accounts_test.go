// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package accounts_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/accounts"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// tree is a root with these files, and its descriptor.
func tree(t *testing.T, files map[string]string) (string, int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := accounts.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(root) })
	return dir, root
}

func field(err error) string {
	if f := fault.As(err).Fields; fault.Is(err, fault.Invalid) && len(f) == 1 {
		return f[0].Name
	}
	return ""
}

const passwd = "root:x:0:0:root:/root:/bin/bash\nbin:x:2:2::/bin:/usr/sbin/nologin\nsandbox:x:1000:1000::/home/sandbox:/bin/bash\n"

func TestAnAccountIsRenamedWhereItIsSaid(t *testing.T) {
	t.Parallel()
	dir, root := tree(t, map[string]string{"etc/passwd": passwd, "etc/group": "root:x:0:\nstaff:x:50:other,sandbox\nsandbox:x:1000:"})
	if err := accounts.Rename(root, 1000, "dev", "/home/dev"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\nbin:x:2:2::/bin:/usr/sbin/nologin\ndev:*:1000:1000::/home/dev:/bin/bash\n",
		"etc/group":  "root:x:0:\nstaff:x:50:other,dev\ndev:x:1000:\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	if err := accounts.Rename(root, 1000, "bin", "/x"); field(err) != "account.name" {
		t.Errorf("the name of another: %v", err)
	}
	if err := accounts.Rename(root, 1000, "root", "/x"); field(err) != "account.name" {
		t.Errorf("root's name: %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "etc/passwd")); !strings.Contains(string(got), "\ndev:*:1000:1000::/home/dev:") {
		t.Errorf("a refused name changed the list:\n%s", got)
	}
}

func TestAnAccountThatTheListLacksIsAdded(t *testing.T) {
	t.Parallel()
	dir, root := tree(t, map[string]string{"etc/passwd": "root:x:0:0::/root:/bin/sh"})
	if err := accounts.Rename(root, 1000, "dev", "/home/dev"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "etc/passwd")); string(got) != "root:x:0:0::/root:/bin/sh\ndev:x:1000:1000::/home/dev:/bin/sh\n" {
		t.Errorf("%s", got)
	}
	_, empty := tree(t, nil)
	if err := accounts.Rename(empty, 1000, "dev", "/home/dev"); err != nil {
		t.Errorf("a root without a list: %v", err)
	}
}

// The lists are the sandbox's: what it made of them leads nowhere, and costs little.
// TestAListIsReplacedAtOnce has a life that was killed in the middle leave its file, and a sandbox a link where that
// one would be.
func TestAListIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(at string) error{
		"half a file": func(at string) error { return os.WriteFile(at, []byte("roo"), 0o600) },
		"a link":      func(at string) error { return os.Symlink(victim, at) },
		"a second name of another file": func(at string) error {
			return os.Link(filepath.Join(filepath.Dir(at), "other"), at)
		},
	} {
		dir, root := tree(t, map[string]string{"etc/passwd": passwd, "etc/group": "sandbox:x:1000:\n", "etc/other": "mine"})
		list := filepath.Join(dir, "etc/passwd")
		if err := errors.Join(os.Chmod(list, 0o640), plant(filepath.Join(dir, "etc/.sandpit-passwd"))); err != nil {
			t.Fatal(name, err)
		}
		before, err := os.Open(list) // whoever reads it goes on with what it was
		if err != nil {
			t.Fatal(err)
		}
		defer before.Close()
		if err := accounts.Rename(root, 1000, "dev", "/home/dev"); err != nil {
			t.Fatal(name, err)
		}
		if got, err := io.ReadAll(before); err != nil || string(got) != passwd {
			t.Errorf("%s: the list was written where it is: %q, %v", name, got, err)
		}
		st, err := os.Stat(list)
		if err != nil || st.Mode() != 0o640 {
			t.Errorf("%s: the new list: %v, %v", name, st, err)
		}
		for _, other := range []string{victim, filepath.Join(dir, "etc/other")} {
			if got, _ := os.ReadFile(other); string(got) != "mine" {
				t.Errorf("%s: %s is changed: %q", name, other, got)
			}
		}
		if names, _ := os.ReadDir(filepath.Join(dir, "etc")); len(names) != 3 {
			t.Errorf("%s: left in /etc: %v", name, names)
		}
	}
}

// TestListsMadeToBeLong reads lists as a sandbox may write them to be slow, or to mislead.
func TestListsMadeToBeLong(t *testing.T) {
	t.Parallel()
	const own = "dev:x:1000:1000::/home/dev:/bin/sh\n"
	for name, text := range map[string]string{
		"one giant line":   strings.Repeat(":", wire.MaxAccountsFile-len(own)-1) + "\n" + own,
		"only line breaks": strings.Repeat("\n", wire.MaxAccountsFile-len(own)) + own,
		"a name again":     own + strings.Repeat("dev:x:0:0::/root:/bin/sh\n", 30000),
		"a giant name":     strings.Repeat("d", 1<<19) + ":x:1000:1000::/:/bin/sh\n" + own,
	} {
		_, root := tree(t, map[string]string{"etc/passwd": text})
		all, err := accounts.List(root)
		if err != nil {
			t.Fatal(name, err)
		}
		if e, ok := accounts.Find(all, "dev"); !ok || e.UID != 1000 || e.Shell != "/bin/sh" {
			t.Errorf("%s: %v, %v", name, e, ok)
		}
	}
	_, root := tree(t, map[string]string{"etc/passwd": "far:x:65535:1::/:/bin/sh\nout:x:100000:1::/:\nlast:x:65534:65534::/:/bin/sh\n"})
	if all, err := accounts.List(root); err != nil || len(all) != 1 || all[0].Name != "last" {
		t.Errorf("numbers that are not the sandbox's: %v, %v", all, err)
	}
}

func TestHostileListsAreNotFollowed(t *testing.T) {
	t.Parallel()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("victim:x:1000:0::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(etc string) error{
		"a link":          func(etc string) error { return os.Symlink(victim, etc+"/passwd") },
		"a pipe":          func(etc string) error { return unix.Mkfifo(etc+"/passwd", 0o644) },
		"a directory":     func(etc string) error { return os.Mkdir(etc+"/passwd", 0o755) },
		"a link above":    func(etc string) error { return errors.Join(os.Remove(etc), os.Symlink(filepath.Dir(victim), etc)) },
		"an endless file": func(etc string) error { return os.Truncate(touch(etc+"/passwd"), 1<<40) },
		"a large file": func(etc string) error {
			return os.WriteFile(etc+"/passwd", make([]byte, wire.MaxAccountsFile+1), 0o644)
		},
		"a link to the proc": func(etc string) error { return os.Symlink("/proc/self/environ", etc+"/passwd") },
	} {
		dir, root := tree(t, map[string]string{"etc/x": ""})
		etc := filepath.Join(dir, "etc")
		if err := os.Remove(etc + "/x"); err != nil {
			t.Fatal(err)
		}
		if err := plant(etc); err != nil {
			t.Fatal(name, err)
		}
		if all, err := accounts.List(root); field(err) != "as_user" || all != nil {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		if err := accounts.Rename(root, 1000, "dev", "/home/dev"); err == nil {
			t.Errorf("%s was written", name)
		}
		if got, _ := os.ReadFile(victim); string(got) != "victim:x:1000:0::/:/bin/sh\n" {
			t.Fatalf("%s: what it leads to is changed: %q", name, got)
		}
	}
}

func touch(name string) string {
	_ = os.WriteFile(name, nil, 0o644)
	return name
}

func TestWhatIsNoAccountIsPassedOver(t *testing.T) {
	t.Parallel()
	_, root := tree(t, map[string]string{
		"etc/passwd": "short:x:5\n:x:6:6::/:\nfar:x:65536:5::/:\nminus:x:-1:5::/:\nspace d:x:7:7::/:\nslash/:x:7:7::/:\nplus:x:+8:8::/:\nzero:x:08:8::/:\n" +
			strings.Repeat("l", 33) + ":x:9:9::/:\nbig:x:4294967296:1::/:\nnul:x:9:9::/\x00:\ngood:x:1001:1002::/home/good:/bin/sh\n1001:x:5:5::/five:\ngarbage\n",
		"etc/group": "root:x:0:good\na:x:7:good\nb:x:8:goodness\nfar:x:65536:good\nbroken\na2:x:7:good\n",
	})
	all, err := accounts.List(root)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if e, ok := accounts.Find(all, "1001"); !ok || e.UID != 5 {
		t.Errorf("a name goes before a number: %+v", e)
	}
	for _, none := range []string{"far", "65536", "-1", "2", "", "god", "root"} {
		if e, ok := accounts.Find(all, none); ok {
			t.Errorf("%q is %+v", none, e)
		}
	}
	e, _ := accounts.Find(all, "good")
	groups, err := accounts.Groups(root, e)
	if err != nil || !slices.Equal(groups, []uint32{1002, 7}) { // and not root's
		t.Errorf("%v, %v", groups, err)
	}
}

// Nothing that is another's is given to the user, and no link is followed on the way to a directory.
func TestDirectoriesOfAnAccount(t *testing.T) {
	t.Parallel()
	dir, root := tree(t, map[string]string{"etc/passwd": passwd, "own/x": ""})
	elsewhere := t.TempDir()
	if err := errors.Join(os.Symlink(elsewhere, dir+"/out"), os.Symlink("own", dir+"/in"), os.Symlink("/nowhere", dir+"/dangling")); err != nil {
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	for path, ok := range map[string]bool{
		"/own": true, "/own/a/b": true, "/new/deep/dir": true,
		"/etc/passwd": false, "/etc/passwd/x": false, "/out": false, "/out/x": false, "/in": false, "/in/y": false, "/dangling": false, "/../x": false,
	} {
		fd, err := accounts.Own(root, "account.home", path, uid, gid)
		if err == nil {
			_ = unix.Close(fd)
		}
		if ok != (err == nil) || !ok && field(err) != "account.home" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if names, err := os.ReadDir(elsewhere); err != nil || len(names) > 0 {
		t.Errorf("made behind a link: %v, %v", names, err)
	}
	for _, path := range []string{"/own", "/etc"} { // they belong to another one than who asks
		if _, err := accounts.Own(root, "account.workdir", path, uid+1, gid); field(err) != "account.workdir" {
			t.Errorf("%s of another user: %v", path, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir+"/own", &st); err != nil || int(st.Uid) != uid {
		t.Errorf("it was given away: %d, %v", st.Uid, err)
	}
}
