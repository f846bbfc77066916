// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/agent/agenttest"
	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/kept"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/internal/skiptest"
)

// initEnv makes this test program the agent of a small sandbox: process 1 of its
// own pid namespace, in a root of its own. Its value is the directory of that root.
const initEnv = "SANDPIT_AGENT_TEST_INIT"

// reapEnv is set where that agent reaps by itself, as it has to before Linux 6.15.
const reapEnv = "SANDPIT_AGENT_TEST_REAP"

func TestAgentThatIsProcessOne(t *testing.T) {
	works := kept.Works() // before an agent is started: it ends a thread, and the kernel with it what that started
	t.Parallel()
	if !works {
		t.Skip("Linux keeps the status of who was reaped since 6.15")
	}
	testInit(t, false)
}

func TestAgentThatIsProcessOneAndReaps(t *testing.T) {
	t.Parallel()
	testInit(t, true)
}

func testInit(t *testing.T, reaps bool) {
	skiptest.WithoutRoot(t, "it makes namespaces")
	groups := cgroupDir(t)
	n := 0
	agenttest.Run(t, func(t *testing.T) *agent.Client {
		n++
		return startInit(t, filepath.Join(groups, fmt.Sprint(n)), reaps)
	}, agenttest.Options{HasRoot: true, IsPID1: true, HasGroups: groups != "", OwnRoot: true, Unprivileged: true, Reaps: reaps})
}

// cgroupDir makes a cgroup v2 directory for this test; "" where there is none.
func cgroupDir(t testing.TB) string {
	for _, top := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(top, "cgroup.controllers")); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(top, "sandpit-agent-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { removeCgroups(t, dir) })
		return dir
	}
	t.Log("no cgroup v2 here: kills are tested without groups")
	return ""
}

// removeCgroups removes a directory of cgroups, which are empty or about to be.
func removeCgroups(t testing.TB, dir string) {
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeCgroups(t, filepath.Join(dir, e.Name()))
		}
	}
	var err error
	for range 1000 {
		if err = unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(time.Millisecond) // the kernel lets go of the dead in its own time
	}
	if err != nil {
		t.Errorf("rmdir %s: %v", dir, err)
	}
}

// startInit starts this program as an agent.
func startInit(t testing.TB, group string, reaps bool) *agent.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, sub := range []string{"root", "log"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	lf, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer lf.Close()
	logDir, err := os.Open(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logDir.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), initEnv+"="+filepath.Join(dir, "root"), "GOMAXPROCS=1")
	if reaps {
		cmd.Env = append(cmd.Env, reapEnv+"=1")
	}
	cmd.ExtraFiles = []*os.File{lf, logDir}
	if filepath.IsAbs(group) {
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Fatal(err)
		}
		g, err := os.Open(group)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, g)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s := stderr.String(); s != "" {
			t.Errorf("the agent wrote:\n%s", s)
		}
	})
	return agent.NewClient(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	})
}

// runInit is the agent's main.
func runInit() int {
	if err := serveInit(os.Getenv(initEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveInit(root string) error {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() { // a busy host moved the goroutine from the first thread
		return unix.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	if err := enterRoot(root); err != nil {
		return err
	}
	unix.Umask(0o022)
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	o := server.Options{
		User: view.Plain(view.Identity{
			Name: "sandbox", UID: 1000, GID: 1000, Home: "/workspace", Credential: &syscall.Credential{Uid: 1000, Gid: 1000},
		}),
		Root:    view.Plain(view.Identity{Name: "root", Home: "/root"}),
		Log:     os.NewFile(4, "log"),
		Init:    true,
		Reap:    os.Getenv(reapEnv) != "",
		Version: "test",
	}
	var st unix.Stat_t
	if unix.Fstat(5, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		o.Groups = server.Cgroups(os.NewFile(5, "groups"))
	}
	if err := server.BecomeInit(); err != nil {
		return err
	}
	if err := makeThreads(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.New(o).Serve(context.Background(), l) }()
	return <-ended
}

// makeThreads has Go's runtime make threads, as system calls that take long do.
func makeThreads() error {
	const many = 12
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	var all sync.WaitGroup
	for range many {
		all.Go(func() { _, _ = unix.Read(pipe[0], make([]byte, 1)) })
	}
	n := 0
	for began := time.Now(); n < many && time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		n = len(tasks)
	}
	err := unix.Close(pipe[1])
	all.Wait()
	if n < many {
		err = fmt.Errorf("there are only %d threads", n)
	}
	return errors.Join(err, unix.Close(pipe[0]))
}

// enterRoot makes a root out of the host's programs, a workspace and a /proc.
func enterRoot(root string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("root", root, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, name := range []string{"usr", "bin", "sbin", "lib", "lib64", "etc", "dev"} {
		at := filepath.Join(root, name)
		if target, err := os.Readlink("/" + name); err == nil {
			if err := os.Symlink(target, at); err != nil {
				return err
			}
			continue
		}
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if name == "etc" { // a copy: tests write and remove files of accounts, as root
			if out, err := exec.Command("cp", "-a", "/etc/.", at).CombinedOutput(); err != nil {
				return fmt.Errorf("copy /etc: %w: %s", err, out)
			}
			continue
		}
		if err := unix.Mount("/"+name, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", name, err)
		}
	}
	for _, name := range []string{"proc", "workspace", "tmp", "root", "old"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chown(filepath.Join(root, "workspace"), 1000, 1000); err != nil {
		return err
	}
	if err := unix.Mount("shm", filepath.Join(root, "dev/shm"), "tmpfs", 0, "mode=1777"); err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, filepath.Join(root, "old")); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Unmount("/old", unix.MNT_DETACH)
}
