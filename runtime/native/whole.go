// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// aheadFile is the mark of an instance that was made before anybody asked for it: its
// server's end ends it, unlike one that somebody has. It goes with the host's boot, so
// the disk has a mark, too, see [layer.Layer.MarkAhead].
const aheadFile = ".ahead"

// whole is a blank on whose process 1 everything was done that a create does, for what was
// asked for most of late. It is a sandbox that runs, with a disk of its own that nobody has
// written to, and lacks only somebody who has it.
type whole struct {
	instance *Instance
	spec     runtime.Spec // what it was made for
	root     inode        // its image's, whose path may come to lead to another one
}

// inode is a directory's identity as long as something holds it.
type inode struct{ dev, ino uint64 }

func inodeOf(path string) (inode, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return inode{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return inode{dev: st.Dev, ino: st.Ino}, nil
}

// signOfLife bounds the answer of an agent that has just begun to serve.
const signOfLife = 10 * time.Second

// ordinary tells whether a sandbox made ahead can be what spec asks for: nothing of its
// disk is somebody's.
func ordinary(spec runtime.Spec) bool { return spec.From == "" && len(spec.Mounts) == 0 }

// complete makes b whole, for spec; or nothing is left of it.
func (b *blank) complete(ctx context.Context, d *Driver, spec runtime.Spec) error {
	i := &Instance{d: d, id: b.id} // nobody is to find it
	i.verb.Lock()
	defer i.verb.Unlock()
	spec.ID, spec.Hostname = b.id, string(b.id)
	root, err := inodeOf(spec.Image.Root)
	if err == nil {
		err = d.instances.WriteFile(string(b.id)+aheadFile, nil, 0o600)
	}
	if err != nil {
		b.end(d)
		return fault.Wrap(fault.Internal, err, "%s cannot be made whole", b.id)
	}
	d.checkpoint("whole.marked")
	layered := false
	err = i.rise(ctx, spec, b, func() (*layer.Layer, error) {
		l, err := d.newLayer(ctx, spec)
		if layered = err == nil; layered {
			if err = l.MarkAhead(); err != nil {
				_ = l.Close()
			}
		}
		d.checkpoint("whole.layer")
		return l, err
	}, func() {})
	if err != nil {
		if layered {
			if left := d.layers.Remove(string(b.id)); left != nil {
				return errors.Join(err, left) // and its mark stays
			}
		}
		_ = i.remove(aheadFile)
		return err
	}
	// What does not answer is given to nobody; and the first call of whoever gets it takes no
	// longer than the next one.
	limit, cancel := context.WithTimeout(ctx, signOfLife)
	defer cancel()
	if _, err := agent.NewClient(i.Dial).Ping(limit); err != nil {
		return errors.Join(err, i.unmake())
	}
	d.checkpoint("whole.made")
	b.whole = &whole{instance: i, spec: spec, root: root}
	return nil
}

// suit gives a whole one to whoever asks for spec, and makes the limits that one's. The
// caller holds the instance's verb. After an error it may have other limits, and is
// nobody's still.
func (w *whole) suit(spec runtime.Spec) error {
	i := w.instance
	l, err := i.running()
	switch {
	case err != nil:
		return err
	case !ordinary(spec) || spec.Image.Root != w.spec.Image.Root || spec.Hostname != w.spec.Hostname:
		return fault.New(fault.State, "it was made for something else")
	}
	if root, err := inodeOf(spec.Image.Root); err != nil || root != w.root {
		return fault.New(fault.State, "its image was removed")
	}
	if limits := i.d.enforceable(spec.Limits); limits != i.d.enforceable(w.spec.Limits) {
		if err := l.group.SetLimits(limits); err != nil {
			return err
		}
	}
	if spec.Limits.DiskMB != w.spec.Limits.DiskMB {
		if err := i.limitDisk(spec.Limits); err != nil {
			return err
		}
	}
	if spec.Limits.LogBytes() != w.spec.Limits.LogBytes() {
		i.limitLogs(context.Background(), spec.Limits)
	}
	i.d.checkpoint("whole.suited")
	// From here on it is a sandbox that outlives this server.
	err = i.d.layers.Claim(string(i.id))
	if err == nil {
		err = i.remove(aheadFile)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the mark of sandbox %s cannot be removed", i.id)
	}
	i.d.checkpoint("whole.given")
	i.Expect()
	return nil
}

// alive tells whether process 1 is there.
func (w *whole) alive() bool {
	l, err := w.instance.running()
	return err == nil && !host.Ended(l.pidfd, 0)
}

// unmake takes an instance back to what it was before its create: nothing. The caller
// holds its verb, or is the only one to know it.
func (i *Instance) unmake() error {
	if err := i.stop(context.Background(), 0); err != nil {
		return err
	}
	return i.clear()
}

// Unclaimed tells whether a disk is of a sandbox made ahead. See [runtime.Preparer].
func (d *Driver) Unclaimed(id sandbox.ID) (bool, error) { return d.layers.Ahead(string(id)) }

// sweepAhead takes away what an earlier server made ahead, and tells whether id is of that.
func (d *Driver) sweepAhead(id sandbox.ID) (bool, error) {
	if _, err := d.instances.Lstat(string(id) + aheadFile); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, (&Instance{d: d, id: id}).clear()
}
