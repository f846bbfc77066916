// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
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

// Lent tells whether the id of a blank was given out and is still waited for.
func (d *Driver) Lent(id sandbox.ID) bool {
	d.blanks.mu.Lock()
	defer d.blanks.mu.Unlock()
	return d.blanks.lent[id] != nil
}
