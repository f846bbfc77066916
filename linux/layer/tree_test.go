// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// describe tells of each path of a tree all that there is to know.
func describe(tb testing.TB, root string) map[string]string {
	tb.Helper()
	tree := make(map[string]string)
	inodes := make(map[uint64]string)
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s := fmt.Sprintf("%o %d:%d dev %d mtime %d.%09d", st.Mode, st.Uid, st.Gid, st.Rdev, st.Mtim.Sec, st.Mtim.Nsec)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s += fmt.Sprintf(" size %d sum %.8x", st.Size, sha256.Sum256(data))
		case unix.S_IFLNK:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			s += " to " + to
		}
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if inodes[st.Ino] == "" {
				inodes[st.Ino] = rel
			}
			s += " same as " + inodes[st.Ino]
		}
		names, err := listAttrs(path)
		if err != nil {
			return err
		}
		for _, name := range names {
			if name == overlayAttrs+"uuid" {
				continue // a copy is another overlay
			}
			buf := make([]byte, 64<<10)
			size, err := unix.Lgetxattr(path, name, buf)
			if err != nil {
				return err
			}
			s += fmt.Sprintf(" %s=%q", name, buf[:size])
		}
		tree[rel] = s
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}

func listAttrs(path string) ([]string, error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
	slices.Sort(names)
	return slices.DeleteFunc(names, func(s string) bool { return s == "" }), nil
}

// sameTree compares two trees.
func sameTree(tb testing.TB, want, got map[string]string) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		if len(diff) > 4000 {
			diff = diff[:4000] + "…"
		}
		tb.Errorf("trees differ (-want +got):\n%s", diff)
	}
}

// grow fills a directory with one of everything that an upper layer can have.
func grow(tb testing.TB, dir string) {
	tb.Helper()
	must := func(errs ...error) {
		tb.Helper()
		if err := errors.Join(errs...); err != nil {
			tb.Fatal(err)
		}
	}
	p := func(name string) string { return dir + "/" + name }
	must(
		os.WriteFile(p("file"), []byte("content"), 0o640),
		os.Chown(p("file"), 1000, 1000),
		os.Chmod(p("file"), 0o4751),
		os.WriteFile(p("empty"), nil, 0o600),
		os.WriteFile(p("big"), make0(3<<20), 0o644),
		os.Symlink("/etc/passwd", p("link")),
		os.Symlink("nowhere\xff\n", p("dangling")),
		unix.Lchown(p("link"), 1000, 65535),
		os.MkdirAll(p("dir/sub/subsub"), 0o755),
		os.Chmod(p("dir/sub"), 0o1777),
		os.Chown(p("dir/sub"), 5, 6),
		os.WriteFile(p("dir/sub/file"), []byte("deep"), 0o644),
		os.Mkdir(p("closed"), 0o000),
		os.WriteFile(p("closed/file"), []byte("in the closed"), 0o000),
		os.Link(p("file"), p("dir/hard")),
		os.Link(p("file"), p("dir/sub/hard")),
		os.Link(p("link"), p("dir/hardlink")),
		unix.Mkfifo(p("fifo"), 0o622),
		unix.Mknod(p("deleted"), unix.S_IFCHR, 0),
		unix.Mknod(p("dir/deleted"), unix.S_IFCHR, 0),
		os.WriteFile(p("name\xff\xfe\n\x01"), []byte("odd"), 0o644),
		os.WriteFile(p(".wh.notdeleted"), []byte("a file of this name"), 0o644),
		os.Mkdir(p("dir/.wh.dir"), 0o755),
		os.WriteFile(p("dir/.wh.dir/.wh..wh..opq"), []byte("likewise"), 0o644),
		os.WriteFile(p(strings.Repeat("n", 255)), nil, 0o644),
		os.Mkdir(p("opaque"), 0o755),
		os.WriteFile(p("opaque/new"), nil, 0o644),
		unix.Setxattr(p("opaque"), opaqueAttr, []byte("y"), 0),
		unix.Setxattr(p("file"), "user.note", []byte("a\x00b"), 0),
		unix.Setxattr(p("file"), "user.a=b", []byte("c"), 0),
		unix.Setxattr(p("file"), "user.empty", nil, 0),
		unix.Setxattr(p("dir"), "user.large", make0(2000), 0),
		// u::rwx,u:7:r--,g::r-x,m::r-x,o::---
		unix.Setxattr(p("big"), "system.posix_acl_access", []byte("\x02\x00\x00\x00"+
			"\x01\x00\x07\x00\xff\xff\xff\xff"+"\x02\x00\x04\x00\x07\x00\x00\x00"+"\x04\x00\x05\x00\xff\xff\xff\xff"+
			"\x10\x00\x05\x00\xff\xff\xff\xff"+"\x20\x00\x00\x00\xff\xff\xff\xff"), 0),
	)
	f, err := os.Create(p("sparse"))
	must(err)
	_, err = f.WriteAt([]byte("end"), 4<<20)
	must(err, f.Truncate(8<<20), f.Close())
	for i, name := range []string{"file", "link", "dir/sub", "closed", "fifo", "sparse", "opaque"} {
		t := unix.NsecToTimespec(time.Date(2001, 2, 3, 4, 5, 6, 7+i, time.UTC).UnixNano())
		must(unix.UtimesNanoAt(unix.AT_FDCWD, p(name), []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW))
	}
}

// growOverlay adds what only an overlay mount makes, and sockets.
func growOverlay(tb testing.TB, dir string) {
	tb.Helper()
	if err := errors.Join(
		unix.Mknod(dir+"/socket", unix.S_IFSOCK|0o755, 0),
		unix.Setxattr(dir+"/dir", overlayAttrs+"origin", []byte("\x00\xfb\x01"), 0),
		unix.Lsetxattr(dir+"/link", overlayAttrs+"origin", []byte("\x00\xfb\x02"), 0),
		unix.Setxattr(dir, overlayAttrs+"impure", []byte("y"), 0),
		unix.Setxattr(dir+"/big", "security.capability", []byte("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0),
	); err != nil {
		tb.Fatal(err)
	}
}

// dig makes a directory in a directory, and so on, and leaves a file in each.
func dig(tb testing.TB, dir, depth int) {
	tb.Helper()
	fd, err := openDir(dir, ".")
	if err != nil {
		tb.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(fd, "d", 0o700); err != nil {
			tb.Fatal(err)
		}
		next, err := openDir(fd, "d")
		if err != nil {
			tb.Fatal(err)
		}
		unix.Close(fd)
		fd = next
		if err := unix.Mknodat(fd, "f", unix.S_IFREG|0o600, 0); err != nil {
			tb.Fatal(err)
		}
	}
	unix.Close(fd)
}

// lowDescriptors lets the process have few descriptors more than it has, while f runs.
func lowDescriptors(t *testing.T, more int, f func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	highest := 0
	for _, fd := range fds {
		n := 0
		fmt.Sscan(fd.Name(), &n)
		highest = max(highest, n)
	}
	low := unix.Rlimit{Cur: uint64(highest + 1 + more), Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// counter counts what it sees, down to the deepest.
type counter struct{ files, dirs, depth, deepest int }

func (c *counter) file(int, string, *unix.Stat_t) error { c.files++; return nil }
func (c *counter) enter(int, string, *unix.Stat_t) error {
	c.dirs++
	c.depth++
	c.deepest = max(c.deepest, c.depth)
	return nil
}
func (c *counter) leave(int) error { c.depth--; return nil }

func count(tb testing.TB, dir int, name string) counter {
	tb.Helper()
	c := counter{}
	if err := walkTree(context.Background(), dir, name, &c); err != nil {
		tb.Fatal(err)
	}
	c.depth = 0
	return c
}
