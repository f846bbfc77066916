// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
	"sandpit.dev/linux/cgroup/counter"
)

const (
	// patience bounds waits whose context has no deadline. A killed process
	// goes in milliseconds; one stuck in a device or a network file system may
	// not go at all.
	patience = 5 * time.Second
	// firstLook is how soon a wait looks again, at first. The kernel wakes who waits for
	// a change of cgroup.events, but holds back all but the first change in 10 ms.
	firstLook = 20 * time.Microsecond
	// pollSlice is how soon a wait notices that its context ended.
	pollSlice = 50 * time.Millisecond
)

// Kill ends every process of the sandbox, its agent and frozen ones included,
// by SIGKILL, however they were forked. It does not wait: Remove does. Killing
// what is gone is fine. Unsupported without cgroup2.
func (g *Group) Kill() error { return g.order(Kill, g.id+"/cgroup.kill", "1") }

// KillCommands ends every command and leaves the agent; otherwise as Kill.
func (g *Group) KillCommands() error { return g.order(Kill, g.commands()+"/cgroup.kill", "1") }

func (g *Group) order(f Feature, path, value string) error {
	if err := g.driver.info.Err(f); err != nil {
		return err
	}
	err := g.driver.kernel.Write(g.driver.tree.dir, path, []byte(value))
	if err == nil || f == Kill && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("cgroup: write %s: %w", path, g.gone(err))
}

// Freeze stops all processes of the sandbox, the agent too, so that nothing
// inside writes a byte, and returns once they stand. When they do not in time
// (the context's, else 5 s) it thaws them and answers Timeout or Canceled.
func (g *Group) Freeze(ctx context.Context) error {
	if err := g.order(Freeze, g.id+"/cgroup.freeze", "1"); err != nil {
		return err
	}
	// A group that has processes of its own, as ID has where the agent is in it, is said
	// to be frozen once those stand, whatever is below it. cmd has none of its own.
	err := g.await(ctx, g.id, "frozen", 1)
	if err == nil && cgroupfs.Exists(g.driver.tree.dir, g.commands()) {
		err = g.await(ctx, g.commands(), "frozen", 1)
	}
	if err == nil {
		return nil
	}
	if thaw := g.order(Freeze, g.id+"/cgroup.freeze", "0"); thaw != nil {
		err = errors.Join(err, thaw)
	}
	return err
}

// Thaw undoes Freeze, and returns once the processes run again, or are gone where they were
// killed. Thawing what is not frozen is fine.
func (g *Group) Thaw(ctx context.Context) error {
	if err := g.order(Freeze, g.id+"/cgroup.freeze", "0"); err != nil {
		return err
	}
	met, err := g.awaitAny(ctx, g.id, event{"frozen", 0}, event{"populated", 0})
	if err != nil || met.key == "frozen" {
		return err
	}
	// The kernel notes a group that became empty while it was to be frozen as frozen, and a thaw
	// clears that note only where the groups below are frozen too. Where their processes were killed
	// and still on their way out, it stays. All are empty now, so that one more thaw clears it.
	for _, value := range []string{"1", "0"} {
		if err := g.order(Freeze, g.id+"/cgroup.freeze", value); err != nil {
			return err
		}
	}
	return g.await(ctx, g.id, "frozen", 0)
}

// Frozen reports whether Freeze was the last word on the group, also that of an
// earlier server, and also where its processes do not stand yet.
func (g *Group) Frozen() (bool, error) {
	if err := g.driver.info.Err(Freeze); err != nil {
		return false, err
	}
	text, err := cgroupfs.Read(g.driver.tree.dir, g.id+"/cgroup.freeze")
	if err != nil {
		return false, fmt.Errorf("cgroup: %w", g.gone(err))
	}
	return strings.TrimSpace(text) == "1", nil
}

// event is a key of cgroup.events with a value.
type event struct {
	key   string
	value uint64
}

// await waits until a key of cgroup.events of the group at path has the value.
func (g *Group) await(ctx context.Context, path, key string, value uint64) error {
	_, err := g.awaitAny(ctx, path, event{key, value})
	return err
}

// awaitAny waits for the first of these events of the group at path, and returns it: it looks,
// and between looks sleeps for longer each time, or until the kernel tells of a change.
func (g *Group) awaitAny(ctx context.Context, path string, wanted ...event) (event, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	events, err := cgroupfs.Openat(g.driver.tree.dir, path+"/cgroup.events", unix.O_RDONLY)
	if err != nil {
		return event{}, g.gone(err)
	}
	defer unix.Close(events)
	fd := []unix.PollFd{{Fd: int32(events), Events: unix.POLLPRI}}
	var buf [256]byte
	for wait := firstLook; ; wait = min(2*wait, pollSlice) {
		n, err := unix.Pread(events, buf[:], 0)
		if err != nil {
			if errors.Is(err, unix.ENODEV) { // removed under us
				return event{}, g.gone(fs.ErrNotExist)
			}
			return event{}, fmt.Errorf("cgroup: %w", err)
		}
		for _, e := range wanted {
			got, err := counter.Parse(buf[:n], e.key)
			if err != nil {
				return event{}, fmt.Errorf("cgroup: %w", err)
			}
			if got == e.value {
				return e, nil
			}
		}
		if err := ctx.Err(); err != nil {
			code := fault.Of(err)
			return event{}, fault.Wrap(code, err, "the processes of cgroup %s did not get to %s %d in time", g.id, wanted[0].key, wanted[0].value)
		}
		slice := unix.NsecToTimespec(int64(wait))
		if _, err := unix.Ppoll(fd, &slice, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return event{}, fmt.Errorf("cgroup: poll: %w", err)
		}
	}
}

// bounded gives a wait its bound, if its context has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, patience)
}

// Remove takes the groups away once their processes are gone, for which it
// waits (the context's time, else 5 s) but which it does not kill. State when
// processes stay; what could be removed is then gone, and Remove may be called
// again. Removing what is gone is fine.
func (g *Group) Remove(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	// cgroup2 first: it says when the last process is gone, for v1 too, as every
	// thread of the sandbox is in its groups there whatever v1 group it is in.
	if t := g.driver.tree; t != nil {
		if err := g.removeTree(ctx, t); err != nil {
			return err
		}
	}
	if err := g.driver.v1.Remove(ctx, g.id); err != nil {
		return notRemoved(g.id, err)
	}
	return nil
}

func (g *Group) removeTree(ctx context.Context, t *tree) error {
	const sweeps = 4
	for n := 1; ; n++ {
		err := g.sweep(t)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
			return notRemoved(g.id, err)
		}
		if err := g.await(ctx, g.id, "populated", 0); err != nil {
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return occupied(g.id, err)
		}
		// Empty of processes, so the next sweep succeeds, unless somebody
		// outside still makes groups or sends processes here.
		if n == sweeps || ctx.Err() != nil {
			return occupied(g.id, err)
		}
	}
}

// sweep removes the tree of the sandbox, leaves first.
func (g *Group) sweep(t *tree) error {
	k := g.driver.kernel
	cmd := g.commands()
	err := k.Rmdir(t.dir, cmd)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		names, e := cgroupfs.Children(t.dir, cmd)
		if e != nil {
			return e
		}
		for _, name := range names {
			if e := k.Rmdir(t.dir, cmd+"/"+name); e != nil && !errors.Is(e, fs.ErrNotExist) {
				return e
			}
		}
		err = k.Rmdir(t.dir, cmd)
	}
	for _, path := range []string{g.id + "/agent", g.id} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err = k.Rmdir(t.dir, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// notRemoved says why a group was not removed.
func notRemoved(path string, err error) error {
	if errors.Is(err, unix.EBUSY) {
		return occupied(path, err)
	}
	return fmt.Errorf("cgroup: remove %s: %w", path, err)
}

func occupied(path string, err error) error {
	return fault.Wrap(fault.State, err, "the cgroup %s still has processes", path).
		WithRemedy("kill them first; one that SIGKILL does not end waits for a device or a network file system")
}
