// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Patience is how long a child may take to its program, in seconds; one that takes
// longer is killed. It takes less than a millisecond, or as long as the program's file
// takes to be read.
const Patience = 5

// Command says what a child executes, and as what. Descriptors stay the caller's.
type Command struct {
	Program  string // its file; one that does not begin with "/" is below Dir
	Argv     []string
	Env      []string // KEY=VALUE
	Dir      int      // the directory that it starts in; O_PATH is enough
	Files    [3]int   // its stdin, stdout and stderr; close-on-exec
	Terminal bool     // stdin becomes the controlling terminal
	Group    int      // the cgroup v2 directory that it is born in; below zero: the caller's
	// Credential is what it takes on; nil: it keeps the thread's.
	Credential *syscall.Credential
	OpenFiles  uint32 // its RLIMIT_NOFILE; 0: the caller's
	// Alone: it is ENOSYS unless the child has no descriptor but Files when its program is looked up, so that no path
	// leads through ours. Without it that is so wherever [MayBeAlone] is true and the kernel has clone3.
	Alone bool
	// AmbientCaps are kept over the change of credentials and the execve.
	AmbientCaps []uintptr
}

// Start starts the command as the leader of a session of its own, with default
// signal handlers and no signal blocked. It returns once the program was
// executed, or the child killed on its way there; the caller then reaps pid. The
// pidfd is below zero on a kernel that has none. An error is the kernel's own
// ([unix.Errno]) for the first step that failed, and leaves no process.
//
// The child inherits what belongs to the calling thread: namespaces, filters,
// capabilities, v1 cgroups. A descriptor without close-on-exec reaches it, so
// nobody may make one.
func (c *Command) Start() (pid, pidfd int, err error) {
	pid, pidfd, err = c.clone()
	if err == errRefused {
		return c.classic()
	}
	return pid, pidfd, err
}

// ignored returns the signals that this process ignores, most often since whoever started
// it does (nohup). execve hands them on, unlike handlers. Signals 32 and 33 are left out: they
// are the C library's own, and Go handles neither.
func ignored() []os.Signal {
	var all []os.Signal
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if sig != 32 && sig != 33 && signal.Ignored(sig) {
			all = append(all, sig)
		}
	}
	return all
}

// errRefused is a clone3 that this kernel does not have, or that is not allowed.
const errRefused = unix.ENOTSUP

// classic starts the command by the means of Go itself.
func (c *Command) classic() (pid, pidfd int, err error) {
	if c.Alone {
		return 0, -1, unix.ENOSYS
	}
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: c.Terminal, Credential: c.Credential, AmbientCaps: c.AmbientCaps, PidFD: &pidfd}
	if c.Group >= 0 {
		sys.UseCgroupFD, sys.CgroupFD = true, c.Group
	}
	pidfd = -1
	if sigs := ignored(); len(sigs) > 0 { // what has a handler begins with its default
		signal.Notify(make(chan os.Signal, 1), sigs...)
		defer signal.Ignore(sigs...)
	}
	pid, err = syscall.ForkExec(c.Program, c.Argv, &syscall.ProcAttr{
		Dir: "/proc/self/fd/" + strconv.Itoa(c.Dir), Env: c.Env, Sys: sys,
		Files: []uintptr{uintptr(c.Files[0]), uintptr(c.Files[1]), uintptr(c.Files[2])},
	})
	if err == nil && c.OpenFiles > 0 { // what it has forked by now has the caller's
		_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, c.openFiles(), nil)
	}
	return pid, pidfd, err
}

func (c *Command) openFiles() *unix.Rlimit {
	return &unix.Rlimit{Cur: uint64(c.OpenFiles), Max: uint64(c.OpenFiles)}
}
