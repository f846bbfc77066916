// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"io"
	"os"
	"time"

	"sandpit.dev/internal/cleanup"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/sandbox"
)

// blank is a process 1 that was started before anybody asked for it: it has its
// namespaces and its cgroups, its Go runtime is up, and it waits for its boot
// message. It has no disk, no image, no limits and no environment, so that it fits
// any request, until it is made whole; whoever gets it is known by its id. Nobody is told
// of it before.
type blank struct {
	id    sandbox.ID
	uids  uidRange // without a network namespace: process 1 has it
	first *firstProcess
	files boot.Files  // all but its disk and its inside
	held  []io.Closer // what files are made of
	lent  time.Time   // when its id was given to somebody; zero: it was not
	used  bool        // its groups are those of a life that ended, see heir
	whole *whole      // nil: it is as said above, and all but its id and lent is used up else
}

// makeBlank makes one, all or nothing.
func (d *Driver) makeBlank(id sandbox.ID) (*blank, error) {
	i := &Instance{d: d, id: id} // only a name: nobody is to find it
	b := &blank{id: id}
	var undo cleanup.Stack
	defer undo.Run()

	var err error
	if b.uids, err = d.uids.take(); err != nil {
		return nil, err
	}
	undo.Add(func() { d.uids.give(b.uids) })
	group, err := d.cgroups.Create(string(id), cgroup.Limits{}, int(b.uids.Base))
	if err != nil {
		return nil, err
	}
	d.checkpoint("create.group")
	b.first, err = i.start(context.Background(), group, group.Dir, nil, b.uids)
	if err != nil {
		_ = group.Remove(context.Background())
		return nil, err
	}
	undo.Add(func() { b.first.end(i) })
	if err = group.Prepare(); err == nil && d.unified() {
		err = d.setApart(b.first)
	}
	if err != nil {
		return nil, err
	}
	if b.files, err = i.bootFiles(group, b.hold); err != nil {
		d.closer.drop(b.held)
		return nil, err
	}
	d.checkpoint("blank.made")
	poke(d.uids.low) // its group was a spare one
	undo.Release()
	return b, nil
}

func (b *blank) hold(f *os.File, err error) (*os.File, error) {
	if err == nil {
		b.held = append(b.held, f)
	}
	return f, err
}

// alive tells whether process 1 is there and waits.
func (b *blank) alive() bool {
	if b.whole != nil {
		return b.whole.alive()
	}
	return !host.Ended(b.first.pidfd, 0)
}

// end undoes makeBlank, and what was made of it since.
func (b *blank) end(d *Driver) {
	if b.whole != nil {
		if err := b.whole.instance.unmake(); err != nil {
			d.log.Error("what was prepared for a sandbox is left behind", "sandbox", b.id, "error", err)
		}
		return
	}
	d.closer.drop(b.held)
	b.first.end(&Instance{d: d, id: b.id})
	d.uids.give(b.uids)
}
