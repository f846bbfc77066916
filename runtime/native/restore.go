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
// last. Nothing of the last life can reach the new disk: its own is another directory by
// then, whose name alone was taken. The exchange is written to the host's disk behind the
// caller's back, as records are: a crash of the host leaves one disk or the other.
func (i *Instance) Restore(ctx context.Context, spec runtime.Spec, from sandbox.ID) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	defer i.d.calm.begin()()
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

	limit, cancel := context.WithCancel(ctx)
	x := i.exchange(limit, spec, from)
	defer x.settle()
	defer cancel() // of what nobody asked for the disk of
	b, err := i.heir(l, names)
	if err == nil {
		if err = i.succeed(ctx, l, int(b.uids.Base)); err != nil {
			b.end(i)
		}
	}
	if err == nil {
		i.d.checkpoint("restore.succeeded")
		if err = i.up(ctx, spec, b, x.open); err == nil {
			return nil
		}
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

// freed tells whether a life is over and all of it is freed.
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

// groupNames gives the cgroup namespace of a life for the next one, to be closed; nil where
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

// heir starts the process 1 of the next life in the groups of l, which have their names from
// names, all or nothing.
func (i *Instance) heir(l *live, names *os.File) (*blank, error) {
	uids, err := i.d.uids.take()
	if err != nil {
		return nil, err
	}
	b := &blank{uids: uids}
	b.first, err = i.start(context.Background(), l.group, l.group.RebirthDir, names, uids)
	if err != nil {
		i.d.uids.give(b.uids)
		return nil, err
	}
	b.first.agent.Mark()
	if b.files, err = i.bootFiles(l.group, b.hold); err != nil {
		b.end(i)
		return nil, err
	}
	return b, nil
}

// succeed waits for the end of the life l, and takes away what the next one must not find.
// The sandbox's root has the host's uid owner then.
func (i *Instance) succeed(ctx context.Context, l *live, owner int) error {
	select {
	case <-l.down:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, name := range instanceFiles() {
		if name == socketFile { // the next life's already
			continue
		}
		if err := i.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Internal, err, "a file of sandbox %s is left behind", i.id)
		}
	}
	return l.group.Renew(ctx, owner)
}

// exchange is the exchange of a disk that goes on while its instance ends and starts.
type exchange struct {
	i *Instance

	done chan struct{} // closed when the disk is exchanged, or is not
	err  error         // why it is not
}

// exchange begins one.
func (i *Instance) exchange(ctx context.Context, spec runtime.Spec, from sandbox.ID) *exchange {
	x := &exchange{i: i, done: make(chan struct{})}
	go func() { // settle waits for it
		defer close(x.done)
		x.err = i.d.layers.Exchange(ctx, string(i.id), string(from), int64(spec.Limits.DiskMB)<<20, ctx.Err)
		if x.err == nil {
			i.d.checkpoint("restore.exchanged")
		}
	}()
	return x
}

// open gives the new disk, once it is there.
func (x *exchange) open() (*layer.Layer, error) {
	<-x.done
	if x.err != nil {
		return nil, x.err
	}
	return x.i.d.layers.Open(string(x.i.id))
}

// settle waits until the disk is exchanged, or is not, and has it written soon. The mounts of
// the new life have been made by then: a commit would have held them up.
func (x *exchange) settle() {
	<-x.done
	x.i.d.layers.CommitCopies()
}
