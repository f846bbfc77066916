// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/host"
	"sandpit.dev/sandbox"
)

// PathNamespace is the mark of a driver's cgroups for which no namespace was chosen.
var PathNamespace = host.PathNamespace

// StoreOf is the loop device of the store, and a directory in it.
func (d *Driver) StoreOf(t *testing.T, id sandbox.ID) (device string, dir *os.File) {
	t.Helper()
	dir, err := d.layers.Logs(string(id))
	if err != nil {
		t.Fatal(err)
	}
	return d.layers.Info().Device, dir
}

// MarkAhead marks a layer as an earlier version did those that it made ahead.
func (d *Driver) MarkAhead(t *testing.T, id sandbox.ID) {
	t.Helper()
	l, err := d.layers.Open(string(id))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := unix.Fsetxattr(l.Fd(), "trusted.sandpit.ahead", nil, 0); err != nil {
		t.Fatal(err)
	}
}

// FillQueue takes all turns of starts, until leave.
func (d *Driver) FillQueue() (leave func()) {
	for range cap(d.queue) {
		d.queue <- struct{}{}
	}
	return func() {
		for range cap(d.queue) {
			<-d.queue
		}
	}
}

// Freeze freezes the instance as a verb does that is killed before it writes that.
func (i *Instance) Freeze(t *testing.T) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.live.group.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Pidfd is open on the instance's process 1, while it is up.
func (i *Instance) Pidfd() *os.File {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.live.pidfd
}

// Line keeps the connection of the next call.
type Line = line

// LineFor is for how long it does.
const LineFor = lineFor

func (n *line) Keep(c net.Conn) { n.keep(c) }
func (n *line) Take() net.Conn  { return n.take() }
func (n *line) Lacks() bool     { return n.lacks() }
func (n *line) Close()          { n.close() }

// CallWaits reports whether the connection of the next call is there.
func (i *Instance) CallWaits() bool {
	i.mu.Lock()
	l := i.live
	i.mu.Unlock()
	if l == nil {
		return false
	}
	l.line.mu.Lock()
	defer l.line.mu.Unlock()
	return l.line.conn != nil
}

// SetServePatience is for how long an agent may say nothing, of instances made after it.
func (d *Driver) SetServePatience(t time.Duration) { d.patience = t }

// InstancesDir is where the states of a driver's instances are.
var InstancesDir = host.InstancesDir
