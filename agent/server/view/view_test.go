// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/view"
	"sandpit.dev/internal/skiptest"
)

// refusedEnv is set in the process that has no rights to take on any other's.
const refusedEnv = "SANDPIT_AGENT_TEST_REFUSED"

// A view that cannot take on its user's rights opens nothing with its own in their place.
func TestAViewThatCannotTakeOnItsUsersRightsRefuses(t *testing.T) {
	if os.Getenv(refusedEnv) == "" {
		skiptest.WithoutRoot(t, "it makes a user namespace")
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestAViewThatCannotTakeOnItsUsersRightsRefuses$", "-test.v")
		cmd.Env = append(os.Environ(), refusedEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	v := view.Plain(view.Identity{Name: "sandbox", UID: 1000, GID: 1000, Home: "/", Credential: &syscall.Credential{Uid: 1000, Gid: 1000}})
	if err := v.(view.Starter).Start(); err == nil {
		t.Error("it says that it can")
	}
	called, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		v.Do(func() { called = true })
		t.Error("the goroutine goes on")
	}()
	<-ended
	if called {
		t.Error("what needs the user's rights was done without them")
	}
	own := view.Plain(view.Identity{Name: "root", Home: "/"})
	own.Do(func() { called = true })
	if !called {
		t.Error("a view of the process's own rights does nothing")
	}
}

func TestPlainViewTakesOnItsUsersRights(t *testing.T) {
	skiptest.WithoutRoot(t, "it takes on another user's rights")
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := view.Plain(view.Identity{Name: "sandbox", UID: 1000, GID: 1000, Credential: &syscall.Credential{Uid: 1000, Gid: 1000}})
	var inside error
	v.Do(func() { _, inside = unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if inside != unix.EACCES {
		t.Errorf("within Do: %v", inside)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Errorf("after it: %v", err)
	}
	_ = f.Close()
}
