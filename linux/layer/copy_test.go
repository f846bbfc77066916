// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/linux/mount"
)

func plainDir(t *testing.T) (string, int) {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return dir, fd
}

func TestACopyIsTheSameInEveryRespect(t *testing.T) {
	each := func(t *testing.T, dir string, fd int) {
		if err := os.Mkdir(dir+"/from", 0o751); err != nil {
			t.Fatal(err)
		}
		grow(t, dir+"/from")
		growOverlay(t, dir+"/from")
		want := describe(t, dir+"/from")
		if err := copyTree(t.Context(), fd, "from", fd, "to"); err != nil {
			t.Fatal(err)
		}
		sameTree(t, want, describe(t, dir+"/to"))
		var st unix.Stat_t
		if err := unix.Stat(dir+"/to/sparse", &st); err != nil || st.Blocks > 1024 {
			t.Errorf("the sparse file has %d blocks, %v; want few", st.Blocks, err)
		}
	}
	t.Run("Ext4OrWhateverHoldsTheTests", func(t *testing.T) {
		dir, fd := plainDir(t)
		each(t, dir, fd)
	})
	t.Run("BtrfsWithClonedContents", func(t *testing.T) {
		needLoop(t)
		s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
		each(t, at(s.volumes, "."), s.volumes)
	})
}

func TestACopyBetweenFileSystems(t *testing.T) {
	needLoop(t)
	dir, fd := plainDir(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	if err := os.Mkdir(dir+"/from", 0o755); err != nil {
		t.Fatal(err)
	}
	grow(t, dir+"/from")
	if err := copyTree(t.Context(), fd, "from", s.top, "copied"); err != nil {
		t.Fatal(err)
	}
	sameTree(t, describe(t, dir+"/from"), describe(t, at(s.top, "copied")))
}

// memoryDir returns a directory in memory: a deep tree takes a disk minutes.
func memoryDir(t *testing.T) int {
	t.Helper()
	needRoot(t)
	m, err := mount.New("tmpfs", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	fd, err := openDir(int(m.Fd()), ".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestADeepTreeIsCopiedWithFewDescriptors(t *testing.T) {
	fd := memoryDir(t)
	if err := unix.Mkdirat(fd, "from", 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := openDir(fd, "from")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(from)
	const depth = 10_000
	dig(t, from, depth)
	lowDescriptors(t, 3*maxChain, func() {
		if err := copyTree(t.Context(), fd, "from", fd, "to"); err != nil {
			t.Error(err)
		}
		want := counter{files: depth, dirs: depth, deepest: depth}
		if diff := cmp.Diff(want, count(t, fd, "to"), cmp.AllowUnexported(counter{})); diff != "" {
			t.Errorf("copy (-want +got):\n%s", diff)
		}
	})
}

func TestAFileOfTheMostNamesIsCopiedOnce(t *testing.T) {
	dir, fd := plainDir(t)
	if err := os.Mkdir(dir+"/from", 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/from/0", []byte("one"))
	names := 1
	for names < 70_000 {
		if err := os.Link(dir+"/from/0", fmt.Sprintf("%s/from/%d", dir, names)); errors.Is(err, unix.EMLINK) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names++
	}
	if err := copyTree(t.Context(), fd, "from", fd, "to"); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir+"/to/0", &st); err != nil {
		t.Fatal(err)
	}
	if links, err := os.ReadDir(dir + "/" + linksName); err != nil || int(st.Nlink) != names+len(links) {
		t.Errorf("the copy has %d names, want %d", st.Nlink, names)
	}
	if got := count(t, fd, "to"); got.files != names {
		t.Errorf("%d files, want %d", got.files, names)
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	dir, fd := plainDir(t)
	if err := os.Mkdir(dir+"/from", 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		writeFile(t, fmt.Sprintf("%s/from/%d", dir, i), nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := copyTree(ctx, fd, "from", fd, "to"); !errors.Is(err, context.Canceled) {
		t.Errorf("copyTree = %v, want canceled", err)
	}
	if got := count(t, fd, "to"); got.files != 0 {
		t.Errorf("%d files were copied", got.files)
	}
}

// What a directory turns into while a tree is read leads a chain nowhere.
func TestAChainDoesNotFollowADirectoryThatMoves(t *testing.T) {
	dir, fd := plainDir(t)
	path := "top"
	for range maxChain + 3 {
		path += "/d"
	}
	if err := os.MkdirAll(dir+"/"+path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/elsewhere", 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := openChain(fd, "top")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for range maxChain + 3 {
		if err := c.down("d"); err != nil {
			t.Fatal(err)
		}
	}
	// The first directory below one that the chain closed.
	if err := os.Rename(dir+"/top/d/d", dir+"/elsewhere/d"); err != nil {
		t.Fatal(err)
	}
	for err == nil && c.depth() > 0 {
		_, err = c.up()
	}
	if !errors.Is(err, errMoved) {
		t.Errorf("up = %v, want %v", err, errMoved)
	}
}
