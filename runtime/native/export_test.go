// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"os"
	"time"

	"sandpit.dev/sandbox"
)

// NamespaceOf is the mark of a driver's cgroups.
var NamespaceOf = namespaceOf

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

// Pidfd is open on the instance's process 1, while it is up.
func (i *Instance) Pidfd() *os.File {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.live.pidfd
}
