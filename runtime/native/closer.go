// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"io"
	"os"
	"sync"
	"time"
)

// closer lets go of overlays in batches. The last one to let go of an overlay
// makes the kernel write the whole store of layers back to the disk, in the
// caller's time. Those that let go at the same time have one such commit together; one
// after the other, while others make and delete sandboxes, each would have its own. Nobody waits for it but a Start on the same layer, which hurries it.
type closer struct {
	mu      sync.Mutex
	pending []leaving
	loose   []io.Closer
	wake    chan struct{} // there is something to close
	hurry   chan struct{} // and somebody waits for it
}

// leaving is an overlay that nobody uses any more.
type leaving struct {
	root *os.File
	gone chan struct{} // closed once it is let go
}

const closeBatch = 250 * time.Millisecond

// closeTogether is how many overlays go at the same time: each is a thread of the server's.
const closeTogether = 16

// closeMost bounds what waits of each kind: whoever has more to close does it itself. Sandboxes
// that come and go without a pause would else use up the server's descriptors.
const closeMost = 512

func newCloser() *closer {
	return &closer{wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

// add takes root over, and gives a channel that is closed once it is let go.
func (c *closer) add(root *os.File) <-chan struct{} {
	gone := make(chan struct{})
	c.mu.Lock()
	full := len(c.pending) >= closeMost
	if !full {
		c.pending = append(c.pending, leaving{root, gone})
	}
	c.mu.Unlock()
	if full {
		_ = root.Close()
		close(gone)
	}
	poke(c.wake)
	return gone
}

// drop takes over descriptors that nobody waits for. The end of a detached mount
// is the end of a grace period of the kernel's, half a millisecond or more.
func (c *closer) drop(files []io.Closer) {
	c.mu.Lock()
	full := len(c.loose) >= closeMost
	if !full {
		c.loose = append(c.loose, files...)
	}
	c.mu.Unlock()
	if full {
		for _, f := range files {
			_ = f.Close()
		}
	}
	poke(c.wake)
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// run closes what is added until done is closed, and then what is left.
func (c *closer) run(done <-chan struct{}) {
	defer c.flush()
	for {
		select {
		case <-done:
			return
		case <-c.wake:
		}
		select {
		case <-done:
			return
		case <-c.hurry:
		case <-time.After(closeBatch):
		}
		c.flush()
	}
}

func (c *closer) flush() {
	c.mu.Lock()
	batch, loose := c.pending, c.loose
	c.pending, c.loose = nil, nil
	c.mu.Unlock()
	for _, f := range loose {
		_ = f.Close()
	}
	var all sync.WaitGroup
	for i, l := range batch {
		if i > 0 && i%closeTogether == 0 {
			all.Wait()
		}
		all.Go(func() {
			_ = l.root.Close()
			close(l.gone)
		})
	}
	all.Wait()
}
