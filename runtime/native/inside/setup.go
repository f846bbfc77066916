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
	"sandpit.dev/agent/server/view"
	"sandpit.dev/linux/cgroup/counter"
	"sandpit.dev/runtime/native/boot"
)

// Setup waits for the driver's message, and gives what the agent's server needs to
// work in the inside that the driver has made meanwhile, and the socket of the sandbox's sudo. It is called once, in a process
// that has become an init, and locked to its first thread.
//
// The message comes to the thread that becomes the user's view: that is there by then, and
// the first thread is woken once, when all is done.
func Setup() (opts server.Options, sudo *os.File, err error) {
	populate()
	user := &lockedView{
		identity: view.Identity{
			Name: userName, UID: userID, GID: userID, Home: userHome,
			Credential: &syscall.Credential{Uid: userID, Gid: userID},
		},
		calls: make(chan func()),
	}
	user.prepare = func() (err error) {
		opts, sudo, err = receive(user)
		return err
	}
	if err := user.Start(); err != nil {
		return server.Options{}, nil, err
	}
	return opts, sudo, nil
}

// receive takes the message, and makes the process and the user's view what it says.
func receive(user *lockedView) (server.Options, *os.File, error) {
	m, f, err := boot.Receive(boot.SocketFD)
	if err != nil {
		return server.Options{}, nil, err
	}
	// Whatever the sandbox's root may do: the agent's memory and descriptors
	// are out of its reach, in /proc too.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return server.Options{}, nil, fmt.Errorf("become undumpable: %w", err)
	}
	if err := inherit(); err != nil {
		return server.Options{}, nil, err
	}
	files, err := openFiles(m.OpenFiles)
	if err != nil {
		return server.Options{}, nil, err
	}
	if err := enterRoot(); err != nil {
		return server.Options{}, nil, err
	}
	told, err := openFacts(f)
	if err != nil {
		return server.Options{}, nil, fmt.Errorf("tell the limits: %w", err)
	}
	user.mounts = f.View
	user.lock = lock{joins: f.Joins, drop: m.AgentCaps, filter: m.UserFilter, answer: told.answer}
	root := &lockedView{
		identity: view.Identity{Name: "root", Home: "/root"},
		lock:     lock{joins: f.Joins, drop: m.AgentCaps &^ m.RootCaps, filter: m.RootFilter, answer: told.answer},
		calls:    make(chan func()),
	}
	return server.Options{
		User: user, Root: root,
		Account:      accountOf(m.Account),
		Expose:       expose,
		Init:         true,
		Reap:         m.Reap,
		Score:        m.Score,
		OpenFiles:    files,
		BoundSockets: true,
		Log:          f.Log,
		MaxLogBytes:  int64(m.LogBytes),
		Groups:       server.Cgroups(f.Cgroup),
		OOMKills:     reader(f.OOM, counter.OOMKills),
		PidsRefusals: reader(f.Pids, counter.PIDsRefused),
		Refresh:      told.refresh,
		SudoSocket:   true,
	}, f.Sudo, nil
}

func accountOf(a *boot.Account) *server.Account {
	if a == nil {
		return nil
	}
	return &server.Account{Name: a.Name, Home: a.Home, Workdir: a.Workdir, Again: a.Again}
}

// enterRoot makes the sandbox's root that of the process, on the thread that calls it and on all
// that have not unshared theirs. It was attached over the empty one that the process was born
// with, and the step up from a root is the one that leads onto it.
func enterRoot() error {
	if err := unix.Chdir("/.."); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("make it the root: %w", err)
	}
	return nil
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

// openFiles is most, or what the server may have itself where that is less: the kernel lets no
// sandbox raise it.
func openFiles(most uint32) (uint32, error) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return uint32(min(uint64(most), own.Max)), nil
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

// expose makes a directory of the root a mount of its own. The user's view has it as well, as it has all
// that is mounted here later, and writes there: what is read-only there is the mount around it.
func expose(dir int) error {
	tree, err := unix.OpenTree(dir, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("clone a directory of the user's: %w", err)
	}
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", dir, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach a directory of the user's: %w", err)
	}
	return nil
}
