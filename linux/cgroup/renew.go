// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

// RebirthDir opens the group that a second process 1 of the sandbox is born in, as Dir does for
// the first: that of MakeAgent where there is one, since the group above may have no process
// then. The caller closes it.
func (g *Group) RebirthDir() (*os.File, error) {
	t, err := g.needTree()
	if err != nil {
		return nil, err
	}
	dir, err := cgroupfs.Open(t.dir, g.id+"/agent", unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) {
		return g.Dir()
	}
	return dir, err
}

// Renew makes the groups of commands what they were after Prepare, but for limits and counters,
// for another process 1, once all processes of the last one are gone: what its commands left of
// groups is removed, and the v2 files belong to owner, the host's uid of the sandbox's root. The
// error is State when processes are left (the context's time, else 5 s).
func (g *Group) Renew(ctx context.Context, owner int) error {
	t, err := g.needTree()
	if err != nil {
		return err
	}
	cmd := g.commands()
	if err := g.await(ctx, cmd, "populated", 0); err != nil {
		return occupied(g.id, err)
	}
	k := g.driver.kernel
	names, err := cgroupfs.Children(t.dir, cmd)
	for _, name := range names {
		if e := k.Rmdir(t.dir, cmd+"/"+name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err == nil {
		err = first(
			func() error { return k.Chown(t.dir, g.id+"/cgroup.procs", owner) },
			func() error { return k.Chown(t.dir, cmd+"/cgroup.procs", owner) },
			func() error { return k.Chown(t.dir, cmd, owner) },
			g.limitAgent, // a server of an earlier version gave none
		)
	}
	if err != nil {
		return fmt.Errorf("cgroup: renew %s: %w", g.id, g.gone(err))
	}
	return nil
}
