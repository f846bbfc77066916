// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

const owner = 231072 // a uid that nobody has

func randomName() string { return strings.ToLower(rand.Text()[:12]) }

// openHost opens the real cgroups under a namespace of the test's own, and
// checks at the end that nothing of it is left.
func openHost(t *testing.T, needs ...Feature) *Driver {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes groups")
	d, err := Open(Options{Namespace: randomName()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ids, err := d.List()
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			g, err := d.Open(id)
			if err == nil {
				err = g.Kill()
			}
			if err == nil {
				err = g.Remove(context.Background())
			}
			if err != nil {
				t.Errorf("clean up %s: %v", id, err)
			}
		}
		for range 2 {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, m := range mounted(t) {
			if _, err := os.Stat(filepath.Join(m.Path, cgroupfs.Top, d.namespace)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left behind at %s: %v", m.Path, err)
			}
		}
	})
	for _, f := range needs {
		if err := d.Info().Err(f); err != nil {
			t.Skip(err)
		}
	}
	return d
}

func create(t *testing.T, d *Driver, l Limits) *Group {
	t.Helper()
	g, err := d.Create(randomName(), l, owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Prepare(), g.Activate()); err != nil {
		t.Fatal(err)
	}
	return g
}

// makeAgent makes the group of process 1, where v2 has limits and it is born elsewhere than
// in ID.
func makeAgent(t *testing.T, g *Group) {
	t.Helper()
	if len(g.driver.tree.limits) == 0 {
		return
	}
	procs, err := g.MakeAgent()
	if err != nil {
		t.Fatal(err)
	}
	_ = procs.Close()
}

// onThread runs f on an OS thread that ends with it and is not the first of
// the process: that one never ends, and would stay in the groups it joins.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			onThread(f) // this goroutine keeps the first thread meanwhile
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

func joinCommands(g *Group) error {
	files, err := g.JoinFiles()
	for _, f := range files {
		if _, e := f.WriteString("0"); e != nil {
			err = errors.Join(err, e)
		}
		f.Close()
	}
	return err
}

// start runs a command as the agent would: from a thread in the v1 groups,
// into a v2 group of its own below cmd.
func start(t *testing.T, g *Group, cmd *exec.Cmd) {
	t.Helper()
	dir, mount, err := g.CommandsDir()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	defer mount.Close()
	name := "p" + randomName()
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o755); err != nil {
		t.Fatal(err)
	}
	own, err := cgroupfs.Open(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(own.Fd())}
	onThread(func() {
		if err = joinCommands(g); err == nil {
			err = cmd.Start()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// startFirst starts a process that does nothing where process 1 is.
func startFirst(t *testing.T, g *Group) *exec.Cmd {
	t.Helper()
	dir, err := g.RebirthDir()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// self starts this test binary in one of TestMain's roles.
func self(role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{childVariable + "=" + role, "GOMAXPROCS=1"}
	cmd.Stderr = os.Stderr
	return cmd
}

const childVariable = "SANDPIT_CGROUP_CHILD"

func TestMain(m *testing.M) {
	switch role := os.Getenv(childVariable); role {
	case "":
		os.Exit(m.Run())
	case "hog":
		use(1 << 30)
		os.Exit(9) // nobody stopped us at a gigabyte
	case "hold", "heavy":
		size := 32 << 20
		if role == "heavy" {
			size = 256 << 20
		}
		hold := use(size)
		fmt.Println("up")
		time.Sleep(time.Hour)
		runtime.KeepAlive(hold)
	case "write": // to descriptor 3, over and over, 16 MiB of one byte in one call
		for n := byte(0); ; n++ {
			if _, err := unix.Pwrite(3, bytes.Repeat([]byte{n}, 16<<20), 0); err != nil {
				panic(err)
			}
		}
	case "spin":
		b, err := syscall.Mmap(3, 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			panic(err)
		}
		for {
			atomic.AddInt64((*int64)(unsafe.Pointer(&b[0])), 1)
		}
	case "agent":
		childAgent()
	}
}

// use takes memory, a megabyte at a time.
func use(bytes int) (hold [][]byte) {
	for range bytes >> 20 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		hold = append(hold, b)
	}
	return hold
}

func members(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// mounted lists the hierarchies of this host that we use.
func mounted(t testing.TB) []cgroupfs.Mount {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return cgroupfs.Mounts(string(text))
}

// v1Group is the path of a group in the v1 hierarchy that has the controller.
func v1Group(t testing.TB, d *Driver, f Feature, group string) string {
	t.Helper()
	for _, m := range mounted(t) {
		if slices.Contains(m.Controllers, string(f)) {
			return filepath.Join(m.Path, cgroupfs.Top, d.namespace, group)
		}
	}
	t.Fatalf("no v1 hierarchy has %s", f)
	return ""
}
