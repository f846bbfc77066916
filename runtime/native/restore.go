// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Restorer = (*Instance)(nil)

// Restore exchanges the disk of an instance that is up. See [runtime.Restorer]. While the
// processes end, the new disk is made and the next process 1 starts, in the groups of the
// last; see startAgain. Nothing of the last life can reach the new disk: its own is another directory by
// then, whose name alone was taken. The exchange is written to the host's disk behind the
// caller's back, as records are: a crash of the host leaves one disk or the other.
func (i *Instance) Restore(ctx context.Context, spec runtime.Spec, from sandbox.ID) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	defer i.d.inflight.begin()()
	if err := ctx.Err(); err != nil {
		return err
	}
	last, err := i.running()
	if err != nil {
		return err
	}
	names, err := i.groupNames(last)
	if err != nil {
		return err
	}
	defer func() { _ = names.Close() }()
	if from != "" { // before anything is done
		snapshot, err := i.d.layers.OpenSnapshot(string(from))
		if err != nil {
			return err
		}
		_ = snapshot.Close()
	}
	l, err := i.replace()
	if err != nil {
		return err
	}
	i.d.checkpoint("restore.killed")

	if err = i.startAgain(ctx, spec, from, l, names); err == nil {
		return nil
	}
	select {
	case <-l.down:
	case <-ctx.Done():
	}
	if l.freed() {
		if err := i.d.sweepDown(i); err != nil { // else the next start does
			i.d.log.Error("the cgroups and files of a sandbox are left behind", "sandbox", i.id, "error", err)
		}
	}
	return err
}

// freed reports whether a life is over and all of it is freed.
func (l *live) freed() bool {
	select {
	case <-l.down:
		return true
	default:
		return false
	}
}

// replace kills the life that is, which leaves its groups and files to the next. It was
// paused, perhaps, or a thaw failed: the groups are no longer frozen.
func (i *Instance) replace() (*live, error) {
	i.mu.Lock()
	l := i.live
	if l == nil || l.over {
		i.mu.Unlock()
		return nil, fault.New(fault.State, "sandbox %s is not running", i.id)
	}
	l.stopping, l.replaced = true, true
	i.mu.Unlock()
	err := i.kill(l)
	if err == nil && i.d.cgroups.Info().Err(cgroup.Freeze) == nil {
		var frozen bool
		if frozen, err = l.group.Frozen(); err == nil && frozen {
			err = l.group.Thaw(context.Background())
		}
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "sandbox %s cannot be killed", i.id)
	}
	return l, nil
}

// groupNames returns the cgroup namespace of a life for the next one, to be closed; nil where
// cgroup2 holds no limit. Its root is the sandbox's group, in which the next process 1 cannot
// be born (see [cgroup.Group.RebirthDir]): with a namespace of its own, from below, the group
// of the commands would be beyond it, and the kernel starts nothing there (nsdelegate).
func (i *Instance) groupNames(l *live) (*os.File, error) {
	if !i.d.unified() {
		return nil, nil
	}
	names, err := os.Open("/proc/" + strconv.Itoa(l.pid) + "/ns/cgroup")
	if err != nil {
		return nil, fault.Wrap(fault.State, err, "sandbox %s is not running", i.id) // it ended just now
	}
	if host.Ended(l.pidfd, 0) { // and its number may be another process's, whose names these are
		_ = names.Close()
		return nil, fault.New(fault.State, "sandbox %s is not running", i.id)
	}
	return names, nil
}

// startAgain begins the next life of an instance in the groups of the last one, which was
// killed; they have their names from names. The new disk is made meanwhile.
func (i *Instance) startAgain(ctx context.Context, spec runtime.Spec, from sandbox.ID, last *live, names *os.File) error {
	defer i.d.inflight.begin()()
	limit, cancel := context.WithCancel(ctx)
	disk, release := makeAside(func() (*layer.Layer, error) { return i.exchangeDisk(limit, spec, from) })
	defer i.d.layers.CommitCopies() // and not before the mounts: a commit would hold them up
	defer release()
	defer cancel() // of a disk that nobody asked for
	s := i.newStart(spec)
	defer s.close()
	s.group = last.group
	return s.run(ctx,
		s.reserveIDs,
		s.launchAgain(names),
		s.awaitProgram,
		s.openGroupFiles,
		s.awaitEnd(last),
		s.awaitTurn,
		s.mountDisk(disk),
		s.mountVolumes,
		s.setLimits,
		s.finish,
	)
}

// exchangeDisk exchanges the instance's disk, and opens the new one.
func (i *Instance) exchangeDisk(ctx context.Context, spec runtime.Spec, from sandbox.ID) (*layer.Layer, error) {
	if err := i.d.layers.Exchange(ctx, string(i.id), string(from), int64(spec.Limits.DiskMB)<<20, ctx.Err); err != nil {
		return nil, err
	}
	i.d.checkpoint("restore.exchanged")
	return i.d.layers.Open(string(i.id))
}

// launchAgain returns the step that begins to start process 1 in the groups of a life that ended.
func (s *start) launchAgain(names *os.File) step {
	return func(ctx context.Context) error { return s.launchIn(ctx, s.group.RebirthDir, names) }
}

// awaitEnd returns the step that waits for the end of the last life, and takes away what the
// next one must not find. The sandbox's root has the host's uid owner then.
func (s *start) awaitEnd(last *live) step {
	return func(ctx context.Context) error {
		s.first.agent.Mark()
		select {
		case <-last.down:
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, name := range instanceFiles() {
			if name == socketFile { // the next life's already
				continue
			}
			if err := s.i.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.Wrap(fault.Internal, err, "a file of sandbox %s is left behind", s.i.id)
			}
		}
		if err := s.group.Renew(ctx, int(s.ids.Base)); err != nil {
			return err
		}
		s.d.checkpoint("restore.succeeded")
		return nil
	}
}

// setLimits sets the limits of groups that a life before had.
func (s *start) setLimits(context.Context) error { return s.group.SetLimits(s.limits) }
