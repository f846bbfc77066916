// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package keeper makes the groups of an agent that has no cgroups: each command runs below a process
// of its own, the keeper, that is the nearest subreaper of all that descends from it. A process
// leaves neither by forking twice nor by a session of its own: whose parent ends becomes
// the keeper's child.
//
// # Killing
//
// The keeper is stopped first, so that it reaps nobody. Then whoever dies among its children stays
// on the list of them, and keeps its number and its share of every limit of processes: the list
// grows only at its end, and who forks and exits without rest is met on it, or comes to that limit at last. Each child
// that lives is killed, until all on the list are dead, and none has come while that was found
// out. The dead have no children, and who lives has an ancestor on the list: nothing is left then.
//
// # Who can undo it
//
// The keeper is a process of the agent's user. No other user can signal it. Commands that have the same user can
// kill it; what its command had started becomes the agent's child then, which kills all children
// that are no keepers. So what a command reaches by that is the end of all that it has started, and of what a
// program that somebody else began in the container, past the agent, has left behind there.
package keeper

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/tree"
)

// Works tries whether commands can have keepers here. Where they can, this process is a subreaper
// from now on.
func Works() bool {
	if !fork.HasKeepers {
		return false
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// Groups makes groups of a process whose children are keepers, and nobody else's.
func Groups() server.Groups { return &keepers{all: make(map[int]*fork.Keeper)} }

type keepers struct {
	mu  sync.Mutex           // held across a fork, so that no keeper is taken for what one left behind
	all map[int]*fork.Keeper // by their numbers
}

// New makes a group whose keeper comes with its command.
func (ks *keepers) New(string) (server.Group, error) {
	return &group{ks: ks, ended: make(chan struct{}), over: make(chan struct{})}, nil
}

// group is one keeper, and what is below it.
type group struct {
	ks    *keepers
	ended chan struct{} // closed when the command has ended, with status
	over  chan struct{} // closed when nothing is left
	work  sync.WaitGroup

	mu       sync.Mutex
	k        *fork.Keeper // nil: there is none yet, or no more
	status   unix.WaitStatus
	sweeping bool
}

// FD is none: the command is born below its keeper.
func (*group) FD() int { return -1 }

// Start starts the command. One of root's can kill its keeper before that has told of it: it is not
// started then, and nothing of it is left.
func (g *group) Start(c *fork.Command) (pid, pidfd int, err error) {
	if pid, pidfd, err = g.start(c); errors.Is(err, unix.EOWNERDEAD) {
		g.ks.killStrays()
	}
	return pid, pidfd, err
}

func (g *group) start(c *fork.Command) (pid, pidfd int, err error) {
	g.ks.mu.Lock()
	defer g.ks.mu.Unlock()
	pid, pidfd, k, err := c.StartKept()
	if err != nil {
		return 0, -1, err
	}
	event, err := k.Event()
	fd := -1
	if err == nil {
		if fd, err = unix.FcntlInt(uintptr(k.PIDFD), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			_ = event.Close()
		}
	}
	if err != nil { // and without these nobody would hear of the end
		_ = unix.Kill(pid, unix.SIGKILL)
		_ = unix.Close(pidfd)
		k.Kill()
		return 0, -1, err
	}
	_ = unix.SetNonblock(fd, true)
	ends := os.NewFile(uintptr(fd), "pidfd")
	g.ks.all[k.PID] = k
	g.mu.Lock()
	g.k = k
	g.mu.Unlock()
	g.work.Go(func() { g.awaitEnd(k, event) })
	g.work.Go(func() {
		readable(ends)
		_ = ends.Close()
		g.conclude(k)
		_ = event.SetReadDeadline(time.Unix(1, 0))
	})
	return pid, pidfd, nil
}

// readable waits until a file is, or its deadline is over. It reads nothing.
func readable(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// awaitEnd waits for the end of the command, or that of its keeper.
func (g *group) awaitEnd(k *fork.Keeper, event *os.File) {
	defer event.Close()
	if _, ok := k.Status(); !ok { // else what told of it may have been taken with what told of the start
		readable(event)
	}
	if status, ok := k.Status(); ok {
		g.mu.Lock()
		g.status = status
		g.mu.Unlock()
		close(g.ended)
		return
	}
	<-g.over
	g.mu.Lock()
	g.status = unix.WaitStatus(unix.SIGKILL) // as all that it had
	if status, ok := k.Status(); ok {
		g.status = status
	}
	g.mu.Unlock()
	close(g.ended)
}

// conclude is called when the keeper has ended.
func (g *group) conclude(k *fork.Keeper) {
	g.ks.mu.Lock()
	if g.ks.all[k.PID] == k { // the number may be another's by now
		delete(g.ks.all, k.PID)
	}
	g.ks.mu.Unlock()
	if !k.Over() {
		g.ks.killStrays()
	}
	close(g.over)
}

// killStrays ends what has become this process's own child, and all below it.
func (ks *keepers) killStrays() {
	for pause := time.Duration(0); ; pause = min(2*pause+pauseLeast, pauseMost) {
		found := false
		list := ks.strays()
		for _, pid := range list {
			if tree.Lives(pid) {
				found = true
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil) // where nobody else reaps
		}
		// One that died after it was listed may have left its children to us since.
		if !found && !slices.ContainsFunc(ks.strays(), func(pid int) bool { return !slices.Contains(list, pid) }) {
			return
		}
		time.Sleep(pause)
	}
}

// strays lists the children that are no keepers.
func (ks *keepers) strays() []int {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return slices.DeleteFunc(tree.Children(os.Getpid()), func(pid int) bool { return ks.all[pid] != nil })
}

// Status waits for the end of the command.
func (g *group) Status() unix.WaitStatus {
	<-g.ended
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status
}

// Empty waits until nothing is left.
func (g *group) Empty(ctx context.Context) error {
	select {
	case <-g.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Members lists what lives below the keeper.
func (g *group) Members() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.k == nil || g.isOver() {
		return nil
	}
	var all []int
	for _, pid := range tree.Below(g.k.PID, true) {
		if pid != g.k.PID {
			all = append(all, pid)
		}
	}
	return all
}

func (g *group) isOver() bool {
	select {
	case <-g.over:
		return true
	default:
		return false
	}
}

// Remove gives back a keeper that has ended.
func (g *group) Remove() error {
	g.mu.Lock()
	k := g.k
	g.mu.Unlock()
	if k == nil {
		return nil
	}
	if !g.isOver() {
		return unix.EBUSY
	}
	g.work.Wait()
	g.mu.Lock()
	g.k = nil
	g.mu.Unlock()
	k.Free()
	return nil
}
