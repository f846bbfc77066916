// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"net"
	"os"
	"testing"
	"time"

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

// Forget does what happens a minute after ids of blanks were given out that nobody used.
func (d *Driver) Forget() {
	d.blanks.mu.Lock()
	for _, b := range d.blanks.lent {
		b.lent = time.Time{}
	}
	d.blanks.mu.Unlock()
	d.blanks.forgotten()
}

// Whole tells whether the id that was given out is of a sandbox made ahead.
func (d *Driver) Whole(id sandbox.ID) bool {
	d.blanks.mu.Lock()
	defer d.blanks.mu.Unlock()
	return d.blanks.lent[id].whole != nil
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

// Lent tells whether the id of a blank was given out and is still waited for.
func (d *Driver) Lent(id sandbox.ID) bool {
	d.blanks.mu.Lock()
	defer d.blanks.mu.Unlock()
	return d.blanks.lent[id] != nil
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

// CallWaits tells whether the connection of the next call is there.
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
