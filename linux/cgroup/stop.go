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
func (g *Group) KillCommands() error { return g.order(Kill, g.id+"/cmd/cgroup.kill", "1") }

func (g *Group) order(f Feature, path, value string) error {
	if err := g.driver.info.Err(f); err != nil {
		return err
	}
	err := g.driver.kernel.write(g.driver.v2.dir, path, []byte(value))
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
	if err == nil && exists(g.driver.v2.dir, g.id+"/cmd") {
		err = g.await(ctx, g.id+"/cmd", "frozen", 1)
	}
	if err == nil {
		return nil
	}
	if thaw := g.order(Freeze, g.id+"/cgroup.freeze", "0"); thaw != nil {
		err = errors.Join(err, thaw)
	}
	return err
}

// Thaw undoes Freeze, and returns once the processes run again. Thawing what
// is not frozen is fine.
func (g *Group) Thaw(ctx context.Context) error {
	if err := g.order(Freeze, g.id+"/cgroup.freeze", "0"); err != nil {
		return err
	}
	return g.await(ctx, g.id, "frozen", 0)
}

// Frozen tells whether Freeze was the last word on the group, also that of an
// earlier server, and also where its processes do not stand yet.
func (g *Group) Frozen() (bool, error) {
	if err := g.driver.info.Err(Freeze); err != nil {
		return false, err
	}
	text, err := read(g.driver.v2.dir, g.id+"/cgroup.freeze")
	if err != nil {
		return false, fmt.Errorf("cgroup: %w", g.gone(err))
	}
	return strings.TrimSpace(text) == "1", nil
}

// await waits until a key of cgroup.events of the group at path has the value: it looks,
// and between looks sleeps for longer each time, or until the kernel tells of a change.
func (g *Group) await(ctx context.Context, path, key string, want uint64) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	events, err := openat(g.driver.v2.dir, path+"/cgroup.events", unix.O_RDONLY)
	if err != nil {
		return g.gone(err)
	}
	defer unix.Close(events)
	fd := []unix.PollFd{{Fd: int32(events), Events: unix.POLLPRI}}
	var buf [256]byte
	for wait := firstLook; ; wait = min(2*wait, pollSlice) {
		n, err := unix.Pread(events, buf[:], 0)
		if err != nil {
			if errors.Is(err, unix.ENODEV) { // removed under us
				return g.gone(fs.ErrNotExist)
			}
			return fmt.Errorf("cgroup: %w", err)
		}
		got, err := counter.Parse(buf[:n], key)
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		if got == want {
			return nil
		}
		if err := ctx.Err(); err != nil {
			code := fault.Of(err)
			return fault.Wrap(code, err, "the processes of cgroup %s did not get to %s %d in time", g.id, key, want)
		}
		slice := unix.NsecToTimespec(int64(wait))
		if _, err := unix.Ppoll(fd, &slice, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("cgroup: poll: %w", err)
		}
	}
}

// Remove takes the groups away once their processes are gone, for which it
// waits (the context's time, else 5 s) but which it does not kill. State when
// processes stay; what could be removed is then gone, and Remove may be called
// again. Removing what is gone is fine.
func (g *Group) Remove(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	// v2 first: it says when the last process is gone, for v1 too, as every
	// thread of the sandbox is in its v2 groups whatever v1 group it is in.
	if h := g.driver.v2; h != nil {
		if err := g.removeV2(ctx, h); err != nil {
			return err
		}
	}
	for i := range g.driver.v1 {
		if err := g.driver.removeV1(ctx, &g.driver.v1[i], g.id); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) removeV2(ctx context.Context, h *hierarchy) error {
	const sweeps = 4
	for n := 1; ; n++ {
		err := g.sweep(h)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
			return fmt.Errorf("cgroup: remove %s: %w", g.id, err)
		}
		if err := g.await(ctx, g.id, "populated", 0); err != nil {
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return g.occupied(err)
		}
		// Empty of processes, so the next sweep succeeds, unless somebody
		// outside still makes groups or sends processes here.
		if n == sweeps || ctx.Err() != nil {
			return g.occupied(err)
		}
	}
}

// sweep removes the v2 tree, leaves first.
func (g *Group) sweep(h *hierarchy) error {
	k := g.driver.kernel
	cmd := g.id + "/cmd"
	err := k.rmdirat(h.dir, cmd)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		names, e := children(h.dir, cmd)
		if e != nil {
			return e
		}
		for _, name := range names {
			if e := k.rmdirat(h.dir, cmd+"/"+name); e != nil && !errors.Is(e, fs.ErrNotExist) {
				return e
			}
		}
		err = k.rmdirat(h.dir, cmd)
	}
	for _, path := range []string{g.id + "/agent", g.id} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err = k.rmdirat(h.dir, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeV1 repeats while threads are there: v1 tells nobody when they go. With
// cgroup2 beside it that has been waited for, and the first try succeeds.
func (d *Driver) removeV1(ctx context.Context, h *hierarchy, path string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, pollSlice) {
		err := d.kernel.rmdirat(h.dir, path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("cgroup: remove %s at %s: %w", path, h.path, err)
		}
		select {
		case <-ctx.Done():
			return occupied(path, err)
		case <-time.After(pause):
		}
	}
}

func (g *Group) occupied(err error) error { return occupied(g.id, err) }

func occupied(path string, err error) error {
	return fault.Wrap(fault.State, err, "the cgroup %s still has processes", path).
		WithRemedy("kill them first; one that SIGKILL does not end waits for a device or a network file system")
}
