// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

func TestNothingOfOursRunsAReleaseAgent(t *testing.T) {
	d := openHost(t, Memory)
	g := create(t, d, someLimits)
	a := take(t, d, g.ID())
	t.Cleanup(func() { _ = a.Remove(context.Background()) })
	for _, m := range mounted(t) {
		for _, path := range []string{".", "_agent0", g.ID()} {
			group := filepath.Join(m.Path, cgroupfs.Top, d.namespace, path)
			if m.V2 {
				continue
			}
			text, err := os.ReadFile(group + "/notify_on_release")
			if got := strings.TrimSpace(string(text)); err != nil || got != "0" {
				t.Errorf("%s: got %q, %v, want 0", group, got, err)
			}
			if cgroupfs.Exists(unix.AT_FDCWD, group+"/release_agent") {
				t.Errorf("%s has a release_agent", group)
			}
		}
	}
}

// The files that belong to the sandbox, wherever they are.
func TestDelegationIsExactlyWhatTheAgentNeeds(t *testing.T) {
	d := openHost(t, Kill)
	g := create(t, d, someLimits)
	var got []string
	for _, m := range mounted(t) {
		root := filepath.Join(m.Path, cgroupfs.Top, d.namespace, g.ID())
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			if st.Uid == owner || st.Gid == owner || info.Mode().Perm()&0o022 != 0 {
				got = append(got, strings.TrimPrefix(path, root))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"/cgroup.procs", "/cmd", "/cmd/cgroup.procs"}
	slices.Sort(got)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// childAgent is process 1 of a sandbox, as its root, first doing its job and
// then its worst. It has ID/cmd as descriptor 3, ID/agent/cgroup.procs as 4.
// It says "name|errno" for each step.
func childAgent() {
	const cmd = 3
	in := bufio.NewScanner(os.Stdin)
	say := func(name string, err error) {
		errno, _ := errors.AsType[unix.Errno](err)
		if err != nil && errno == 0 {
			fmt.Printf("%s|%v\n", name, err)
			return
		}
		fmt.Printf("%s|%d\n", name, errno)
	}
	write := func(dir int, path, value string) error { return cgroupfs.System{}.Write(dir, path, []byte(value)) }
	_, err := unix.Write(4, []byte("0"))
	say("enter agent", err)
	own, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(own)) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			fmt.Printf("seen as|%s", rest)
		}
	}
	fmt.Println("ready|0")
	in.Scan()

	say("make a group", unix.Mkdirat(cmd, "p1", 0o755))
	dir, err := cgroupfs.Open(cmd, "p1", unix.O_RDONLY|unix.O_DIRECTORY)
	say("open it", err)
	c := exec.Command("/bin/sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	say("fork into it", c.Start())
	procs, err := cgroupfs.Read(cmd, "p1/cgroup.procs")
	if strings.TrimSpace(procs) != strconv.Itoa(c.Process.Pid) {
		err = errors.Join(err, fmt.Errorf("members %q", procs))
	}
	say("it is there", err)

	say("a group below it", unix.Mkdirat(cmd, "p1/deep", 0o755))
	for _, path := range []string{"cgroup.subtree_control", "cgroup.max.depth", "cgroup.max.descendants", "cgroup.freeze",
		"cgroup.kill", "cgroup.threads", "memory.max", "pids.max", "cpu.max"} {
		if !cgroupfs.Exists(cmd, path) {
			continue // a controller that v1 has
		}
		say("write cmd/"+path, write(cmd, path, "1"))
	}
	say("chmod a limit", unix.Fchmodat(cmd, "cgroup.max.descendants", 0o666, 0))
	say("make a group beside cmd", unix.Mkdirat(cmd, "../evil", 0o755))
	for _, path := range strings.Fields(os.Getenv("ATTACK")) {
		say("write "+path, write(unix.AT_FDCWD, path, strconv.Itoa(c.Process.Pid)))
	}
	for _, path := range strings.Fields(os.Getenv("ATTACKDIRS")) {
		say("mkdir "+path, unix.Mkdir(path, 0o755))
	}
	fmt.Println("worst|0")
	in.Scan()
	say("kill it", write(cmd, "p1/cgroup.kill", "1"))
	c.Wait()
	say("remove it", unix.Unlinkat(cmd, "p1", unix.AT_REMOVEDIR))
	in.Scan()
}

func TestAgentWorksInItsTreeAndCannotLeaveIt(t *testing.T) {
	skiptest.WithoutRoot(t, "it starts a process as the sandbox's root")
	d := openHost(t, Kill)
	g, err := d.Create(randomName(), someLimits, owner)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(d.tree.path, cgroupfs.Top, d.namespace)
	dir, err := g.Dir()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := g.Prepare(); err != nil {
		t.Fatal(err)
	}
	commands, mount, err := g.CommandsDir()
	if err != nil {
		t.Fatal(err)
	}
	defer commands.Close()
	defer mount.Close()
	enter, err := g.MakeAgent()
	if err != nil {
		t.Fatal(err)
	}
	defer enter.Close()

	cmd := self("agent")
	cmd.ExtraFiles = []*os.File{commands, enter}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: int(dir.Fd()),
		Unshareflags: unix.CLONE_NEWCGROUP,
		Credential:   &syscall.Credential{Uid: owner, Gid: owner},
	}
	a := take(t, d, g.ID())
	t.Cleanup(func() { _ = a.Remove(context.Background()) })
	denied := map[string]bool{}
	var files, dirs []string
	for _, m := range mounted(t) {
		base := filepath.Join(m.Path, cgroupfs.Top, d.namespace)
		names := []string{g.ID() + "/tasks", g.ID() + "/cgroup.procs", g.ID() + "/memory.limit_in_bytes", g.ID() + "/pids.max",
			g.ID() + "/cpu.cfs_quota_us", g.ID() + "/notify_on_release", "_agent0/tasks", "_agent0/memory.limit_in_bytes", "cgroup.procs", "../../release_agent", "../../cgroup.procs"}
		if m.V2 {
			names = []string{g.ID() + "/agent/cgroup.procs", g.ID() + "/agent/cgroup.kill", g.ID() + "/cgroup.kill", g.ID() + "/cgroup.subtree_control", "cgroup.procs", "../../cgroup.procs"}
		}
		for _, name := range names {
			if path := filepath.Join(base, name); cgroupfs.Exists(unix.AT_FDCWD, path) {
				files = append(files, path)
				denied["write "+path] = true
			}
		}
		for _, path := range []string{base + "/evil", base + "/" + g.ID() + "/evil"} {
			dirs = append(dirs, path)
			denied["mkdir "+path] = true
		}
	}
	cmd.Env = append(cmd.Env, "ATTACK="+strings.Join(files, " "), "ATTACKDIRS="+strings.Join(dirs, " "))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer stdin.Close()
	lines := bufio.NewScanner(stdout)
	got := map[string]string{}
	until := func(mark string) {
		t.Helper()
		for lines.Scan() {
			name, result, _ := strings.Cut(lines.Text(), "|")
			got[name] = result
			if name == mark {
				return
			}
		}
		t.Fatalf("the agent ended before %q; so far %v", mark, got)
	}
	until("ready")
	if err := g.Activate(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(stdin)
	until("worst")
	if _, err := os.Stat(filepath.Join(root, g.ID(), "evil")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a group beside cmd: %v", err)
	}
	fmt.Fprintln(stdin)
	until("remove it")

	want := map[string]string{"seen as": "/agent", "a group below it": strconv.Itoa(int(unix.EAGAIN))}
	for _, name := range []string{"enter agent", "ready", "make a group", "open it", "fork into it", "it is there", "worst", "kill it", "remove it"} {
		want[name] = "0"
	}
	for name := range got {
		if strings.HasPrefix(name, "write cmd/") {
			denied[name] = true
		}
	}
	for name := range denied {
		want[name] = strconv.Itoa(int(unix.EACCES))
	}
	want["chmod a limit"] = strconv.Itoa(int(unix.EPERM))
	want["make a group beside cmd"] = "0" // inside cmd: the mount ends there
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if len(denied) < 10 {
		t.Errorf("only %d attacks were tried: %v", len(denied), denied)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if err := g.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
