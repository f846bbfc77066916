// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// memoryGroups is where cgroup v1 counts memory. A group of it stands for the host here: the
// server and its sandboxes see no other, and what is killed is killed in it.
const memoryGroups = "/sys/fs/cgroup/memory"

func TestWhereTheHostsMemoryEndsCommandsEndFirstThenAgentsThenTheServer(t *testing.T) {
	images := needRoot(t)
	if _, err := os.Stat(memoryGroups + "/memory.limit_in_bytes"); err != nil {
		t.Skip("needs the memory controller of cgroup v1, to stand for a host:", err)
	}
	const size = 600 << 20
	group := filepath.Join(memoryGroups, fmt.Sprintf("sandpit-host-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroups(t, group) })
	if err := os.WriteFile(group+"/memory.limit_in_bytes", fmt.Append(nil, size), 0); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &server{dir: dir, env: environment(dir, images)}
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	// Pages of a tmpfs are nobody's: what fills the host is no process that could be killed for it.
	files := filepath.Join(dir, "files")
	writer := exec.Command("cat")
	var pipe io.WriteCloser
	inHost(t, group, func() (err error) {
		if err = os.Mkdir(files, 0o755); err == nil {
			err = unix.Mount("tmpfs", files, "tmpfs", 0, "size=2g")
		}
		var file *os.File
		if err == nil {
			file, err = os.Create(files + "/fill")
		}
		if err == nil {
			defer file.Close()
			writer.Stdout = file
			pipe, err = writer.StdinPipe()
		}
		if err == nil {
			err = writer.Start()
		}
		if err == nil {
			err = s.start()
		}
		return err
	})
	t.Cleanup(func() { _ = writer.Process.Kill(); _ = writer.Wait() })
	for _, name := range []string{"one", "two"} {
		for _, args := range [][]string{
			{"create", "--name", name, "--memory", "400M"},
			{"exec", "--detach", name, "--", "python3", "-c", "import time; x = b'x' * (40 << 20); print('held', flush=True); time.sleep(10000)"},
			{"exec", name, "--", "sh", "-c", "until grep -Eq 'VmRSS:[[:space:]]*[4-9][0-9]{4} kB' /proc/$(pgrep -n python3)/status; do :; done"},
		} {
			if out, err := s.command(args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
	}
	agents := tasks(t, group+"/sandpit/*/_agent*/cgroup.procs")
	var commands []string
	for range 200 { // what looked at their memory is on its way out
		commands = slices.DeleteFunc(tasks(t, group+"/sandpit/*/*/cgroup.procs"), func(pid string) bool { return slices.Contains(agents, pid) })
		if len(commands) == 2 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	serving := []string{fmt.Sprint(s.cmd.Process.Pid)}
	if len(agents) < 2 || len(commands) != 2 {
		t.Fatalf("agents %v, commands %v: want at least two, and two", agents, commands)
	}
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	// Nothing more is killed than what a megabyte needs, and who is killed may take a while to go.
	// So what was to end before another is waited for, while nothing is written: if it was not
	// killed it stays.
	ordered := false
	for written := 0; anyAlive(serving); written += len(chunk) {
		if written > size {
			t.Fatalf("after %d bytes the server lives, in %d", written, size)
		}
		if !ordered && !allAlive(agents) {
			if !gone(commands) {
				t.Fatal("an agent ended before a command")
			}
			ordered = true
		}
		if _, err := pipe.Write(chunk); err != nil {
			break // nothing else was left to end
		}
	}
	if !gone(commands) || !gone(agents) {
		t.Error("the server ended before an agent or a command")
	}
	_ = s.end(syscall.SIGKILL)
}

// inHost runs f, and what f starts, where the group is all that there is of memory.
func inHost(t *testing.T, group string, f func() error) {
	t.Helper()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		out, err := os.OpenFile(memoryGroups+"/tasks", os.O_WRONLY, 0)
		if err == nil {
			err = unix.Unshare(unix.CLONE_NEWNS)
		}
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = os.WriteFile(group+"/tasks", []byte("0"), 0)
		}
		if err == nil {
			err = unix.Mount(group, memoryGroups, "", unix.MS_BIND, "")
		}
		if err == nil {
			err = f()
		}
		if out != nil { // or the test itself would be one to end
			_, _ = out.WriteString("0")
			_ = out.Close()
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// tasks are the processes that the files which match the pattern name.
func tasks(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, file := range found {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // a group that was made ahead, and has another name by now
		}
		list = append(list, strings.Fields(string(b))...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func alive(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// gone waits until all are, or it is sure that one stays.
func gone(pids []string) bool {
	pace, limit := time.NewTicker(5*time.Millisecond), time.NewTimer(10*time.Second)
	defer pace.Stop()
	defer limit.Stop()
	for anyAlive(pids) {
		select {
		case <-pace.C:
		case <-limit.C:
			return false
		}
	}
	return true
}

func anyAlive(pids []string) bool { return slices.ContainsFunc(pids, alive) }

func allAlive(pids []string) bool {
	return !slices.ContainsFunc(pids, func(pid string) bool { return !alive(pid) })
}

// removeGroups removes a group and all below it, the deepest first.
func removeGroups(t *testing.T, group string) {
	var dirs []string
	_ = filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil {
			t.Errorf("a group is left: %v", err)
		}
	}
}
