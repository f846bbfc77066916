// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/linux/changes"
)

// The child is a sandbox in small: its own mount and pid namespace, with the
// overlay as its root. It takes one step a line and answers each.
const childEnv = "CHANGES_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		childMain()
		return
	}
	os.Exit(m.Run())
}

func childMain() {
	fail := func(what string, err error) {
		if err != nil {
			fmt.Println(what, err)
			os.Exit(1)
		}
	}
	at := os.Getenv(childEnv)
	fail("make mounts private:", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	fail("move_mount:", unix.MoveMount(3, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH))
	fail("chdir:", os.Chdir(at))
	fail("chroot:", unix.Chroot("."))
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		word := strings.Fields(in.Text())
		var err error
		switch word[0] {
		case "write":
			err = os.WriteFile(word[1], []byte("x"), 0o644)
		case "mkdir":
			err = os.Mkdir(word[1], 0o755)
		case "rename":
			err = unix.Rename(word[1], word[2])
		case "rm":
			err = os.RemoveAll(word[1])
		case "symlink":
			err = os.Symlink(word[1], word[2])
		case "tmpfs":
			err = unix.Mount("none", word[1], "tmpfs", 0, "")
		case "bind":
			err = unix.Mount(word[1], word[2], "", unix.MS_BIND, "")
		}
		fmt.Println("done", err)
	}
}

type child struct {
	t   *testing.T
	pid int
	in  io.Writer
	out *bufio.Reader
}

func startChild(t *testing.T, o *overlay) *child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+t.TempDir())
	cmd.ExtraFiles = []*os.File{o.mount}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	c := &child{t: t, pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out)}
	if line := c.line(); line != "ready" {
		t.Fatalf("the child says %q, want ready", line)
	}
	return c
}

func (c *child) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("the child is gone: %v", err)
	}
	return strings.TrimSpace(line)
}

func (c *child) do(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		fmt.Fprintln(c.in, line)
		if got := c.line(); got != "done <nil>" {
			c.t.Fatalf("%s: %s", line, got)
		}
	}
}

func TestAnotherMountNamespace(t *testing.T) {
	t.Run("ChangesThereAreSeenWithThePathsOfTheSandbox", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), lower)
		s := add(t, newGroup(t, changes.Options{}), o) // before the mount moves in
		c := startChild(t, o)
		tr := track(t, s)
		c.do("mkdir /workspace/d", "write /workspace/d/f", "write /tmp/x", "rename /workspace/low /workspace/d/low", "rm /workspace/ld")
		write(t, o.ws+"/mine", "x") // as the file API does from outside
		want := []string{"created d", "created d/f", "created d/low", "deleted ld", "deleted ld/s", "deleted ld/s/z",
			"deleted ld/x", "deleted ld/y", "deleted low", "created mine"}
		if diff := cmp.Diff(stop(t, tr), want); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
	t.Run("ARunningSandboxIsFoundAgainByItsProcess", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		c := startChild(t, o)
		must(t, o.mount.Close())
		root, err := os.Open(fmt.Sprintf("/proc/%d/root", c.pid))
		must(t, err)
		s, err := newGroup(t, changes.Options{}).Add(root, nil)
		must(t, err)
		defer s.Close()
		must(t, root.Close())
		tr := track(t, s)
		c.do("mkdir /workspace/d", "write /workspace/d/f")
		if diff := cmp.Diff(stop(t, tr), []string{"created d", "created d/f"}); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
	t.Run("AMountInTheWorkspaceHidesNothingElseAndIsNotEntered", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		c := startChild(t, o)
		s := add(t, newGroup(t, changes.Options{}), o)
		c.do("mkdir /workspace/m", "mkdir /workspace/m/sub", "write /workspace/m/sub/f")
		tr := track(t, s)
		c.do("write /workspace/m/under", "write /workspace/m/sub/g", "write /workspace/seen", "mkdir /workspace/over",
			"tmpfs /workspace/m", "tmpfs /workspace/over", "write /workspace/m/in-the-mount", "mkdir /workspace/m/sub")
		got, err := tr.Stop(t.Context())
		must(t, err)
		// The directory m itself did not change. Its names are looked up under the
		// mount, by handle; the new directory that lies under one cannot be.
		if diff := cmp.Diff(lines(got), []string{"created m/sub/g", "created m/under", "created seen"}); diff != "" || got.Complete {
			t.Errorf("got Complete=%v, want false; got - want +\n%s", got.Complete, diff)
		}
	})
	t.Run("AMovedDirectoryWithAMountIsNotLeft", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		c := startChild(t, o)
		s := add(t, newGroup(t, changes.Options{}), o)
		c.do("mkdir /workspace/d", "mkdir /workspace/d/m", "write /workspace/d/f", "mkdir /secret", "tmpfs /secret",
			"write /secret/key", "bind /secret /workspace/d/m")
		tr := track(t, s)
		c.do("rename /workspace/d /workspace/e")
		got, err := tr.Stop(t.Context())
		must(t, err)
		if strings.Contains(strings.Join(lines(got), "\n"), "key") || got.Complete {
			t.Errorf("got %v Complete=%v, want nothing of the mount, and false", lines(got), got.Complete)
		}
	})
	t.Run("LinksToTheHostAreNotFollowed", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		c := startChild(t, o)
		s := add(t, newGroup(t, changes.Options{}), o)
		c.do("mkdir /workspace/d", "write /workspace/d/passwd")
		tr := track(t, s)
		c.do("write /workspace/d/passwd", "rename /workspace/d /workspace/was", "symlink /etc /workspace/d",
			"symlink /etc/passwd /workspace/p")
		got, err := tr.Stop(t.Context())
		must(t, err)
		want := changes.Changes{Complete: true, Total: 5, Files: []changes.Change{
			{Path: "d", Action: changes.Modified, Type: changes.Symlink},
			{Path: "d/passwd", Action: changes.Deleted},
			{Path: "p", Action: changes.Created, Type: changes.Symlink},
			{Path: "was", Action: changes.Created, Type: changes.Dir},
			{Path: "was/passwd", Action: changes.Created, Type: changes.File, Size: 1},
		}}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
}
