// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"sandpit.dev/fault"
	"sandpit.dev/linux/layer"
)

// early is a disk that is being made before anybody asks for it: a copy waits for a commit
// of the store, and what else a start needs is done meanwhile. It has one user.
type early struct {
	disk  func() (*layer.Layer, error)
	done  chan struct{} // closed when it is made, or is not
	layer *layer.Layer
	err   error
	taken bool
}

// beginEarly begins to make it. It is to be opened or dropped.
func beginEarly(disk func() (*layer.Layer, error)) *early {
	e := &early{disk: disk, done: make(chan struct{})}
	go func() { // open, or drop, waits for it
		defer close(e.done)
		e.layer, e.err = disk()
	}()
	return e
}

// open gives the disk once it is there, and makes another each time that it is asked again.
func (e *early) open() (*layer.Layer, error) {
	if e.taken {
		return e.disk()
	}
	e.taken = true
	<-e.done
	if fault.Is(e.err, fault.Exists) { // what had the id may be gone since
		return e.disk()
	}
	return e.layer, e.err
}

// drop waits until nothing is made of it any more, and tells whether there is a disk that
// nobody opened.
func (e *early) drop() bool {
	<-e.done
	if e.taken || e.err != nil {
		return false
	}
	_ = e.layer.Close()
	return true
}
