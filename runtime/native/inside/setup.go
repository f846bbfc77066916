// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/runtime/native/cgroup/counter"
)

// Setup waits for the driver's message, makes the inside, and gives what the
// agent's server needs to work in it. It is called once, by the process's first
// thread, which stays locked: /proc/1 shows that thread's namespaces and limits,
// and they must be the agent's own.
func Setup() (server.Options, error) {
	if unix.Gettid() != unix.Getpid() {
		return server.Options{}, fmt.Errorf("set up: thread %d is not the first of process %d", unix.Gettid(), unix.Getpid())
	}
	m, f, err := boot.Receive(boot.SocketFD)
	if err != nil {
		return server.Options{}, err
	}
	// Whatever the sandbox's root may do: the agent's memory and descriptors
	// are out of its reach, in /proc too.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return server.Options{}, fmt.Errorf("become undumpable: %w", err)
	}
	if err := inherit(); err != nil {
		return server.Options{}, err
	}
	if err := enterRoot(f); err != nil {
		return server.Options{}, err
	}
	if err := unix.Sethostname([]byte(m.Hostname)); err != nil {
		return server.Options{}, fmt.Errorf("set the host name: %w", err)
	}
	if err := loopback(); err != nil {
		return server.Options{}, err
	}
	if err := forbidUserNamespaces(); err != nil {
		return server.Options{}, err
	}
	if err := mask(); err != nil {
		return server.Options{}, err
	}
	// Mounts that the agent makes later reach the user's view too.
	if err := unix.Mount("", "/", "", unix.MS_SHARED, ""); err != nil {
		return server.Options{}, fmt.Errorf("share mounts with the user's view: %w", err)
	}
	root := &view{
		identity: server.Identity{Name: "root", Home: "/root"},
		prepare:  func() error { return nil },
		lock:     lock{joins: f.Joins, caps: m.RootCaps, filter: m.RootFilter},
		calls:    make(chan func()),
	}
	user := &view{
		identity: server.Identity{
			Name: userName, UID: userID, GID: userID, Home: userHome,
			Credential: &syscall.Credential{Uid: userID, Gid: userID},
		},
		prepare: userMounts,
		lock:    lock{joins: f.Joins, filter: m.UserFilter},
		calls:   make(chan func()),
	}
	if err := user.Start(); err != nil {
		return server.Options{}, err
	}
	return server.Options{
		User: user, Root: root,
		Log:          f.Log,
		Groups:       server.Cgroups(f.Cgroup),
		OOMKills:     reader(f.OOM, counter.OOMKills),
		PidsRefusals: reader(f.Pids, counter.PIDsRefused),
	}, nil
}

// inherit sets what all commands inherit and the server's own may not decide.
func inherit() error {
	unix.Umask(0o022)
	// A crash must never start the host's core_pattern program: it runs outside
	// of every namespace. A limit of 1, and only that, means so for a program
	// and is too little for a file, see core(5) and the kernel's do_coredump.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}

// forbidUserNamespaces lets nothing inside make a user namespace, by whatever
// system call. A filter can tell clone's flags and not those of clone3, which
// are in memory; this limit is the kernel's own, and covers both.
func forbidUserNamespaces() error {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return fmt.Errorf("forbid user namespaces: %w", err)
	}
	return nil
}

// reader reads a counter of the kernel's anew each time. It is nil for the null
// device, which stands for a counter that this host does not have.
func reader(f *os.File, read func(io.ReaderAt) (uint64, error)) func() (int64, error) {
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeDevice != 0 {
		return nil // the host does not count it
	}
	return func() (int64, error) {
		n, err := read(f)
		return int64(n), err
	}
}
