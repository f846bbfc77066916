// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
	"sandpit.dev/linux/cgroup/v1"
)

// shrink makes room under a memory limit that is to come: cgroup2 takes any limit, and kills for
// it. A v1 limit does so by itself, and is refused where it cannot.
func (g *Group) shrink(limit int64) error {
	t := g.driver.tree
	if t == nil || !slices.Contains(t.limits, Memory) {
		return nil
	}
	for tried := false; ; tried = true {
		u, err := g.Usage()
		switch {
		case err != nil:
			return err
		case u.MemoryBytes <= limit:
			return nil
		case tried:
			return inUse(limit, unix.EBUSY)
		}
		err = g.driver.kernel.Write(t.dir, g.commands()+"/memory.reclaim", strconv.AppendInt(nil, u.MemoryBytes-limit, 10))
		// EAGAIN: less was freed than was asked for. A kernel before 5.19 has no such file.
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cgroup: reclaim memory of %s: %w", g.id, err)
		}
	}
}

// Reclaim has the kernel take from the commands what memory they can do without: above
// all the cache of files, which is theirs to read again. It takes as long as the
// kernel has something to take, or until ctx is done: 4 ms per 10 MB and more. Where nothing
// limits memory, or the kernel cannot, it does nothing. It is for groups that stand still.
func (g *Group) Reclaim(ctx context.Context) error {
	err := g.reclaim(ctx)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINTR) || errors.Is(err, fs.ErrNotExist) {
		return nil // less than all, as ever
	}
	return err
}

func (g *Group) reclaim(ctx context.Context) error {
	if t := g.driver.tree; t != nil && slices.Contains(t.limits, Memory) {
		u, err := g.Usage()
		if err != nil || u.MemoryBytes == 0 {
			return err
		}
		return cgroupfs.WriteUntil(ctx, t.dir, g.commands()+"/memory.reclaim", strconv.AppendInt(nil, u.MemoryBytes, 10))
	}
	if !g.driver.v1.Holds(v1.Memory) {
		return nil
	}
	return g.driver.v1.Reclaim(ctx, g.id)
}
