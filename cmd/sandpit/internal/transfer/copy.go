// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package transfer copies trees between this machine and sandboxes, each as one tar archive in one stream.
// What comes out of a sandbox is hostile: it is unpacked through os.Root.
package transfer

import (
	"io"

	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/fault"
)

const (
	// EntryCost is what a file or directory counts for beside its content: a block of a disk.
	EntryCost = 4 << 10
	// streamBuffer gathers the blocks of an archive, which are small.
	streamBuffer = 128 << 10
	copyBuffer   = 64 << 10
	// maxDepth is how deep a tree is copied, as in a sandbox.
	maxDepth = 200
)

// Copy is one copy. Its methods are for one goroutine at a time.
type Copy struct {
	Follow  bool     // links are followed
	Exclude []string // patterns of what is left alone
	Most    int64    // bytes that are written to this machine, EntryCost for each entry included
	Bar     *progress.Bar
	// Left is called with what is left out, and why.
	Left func(name, why string)

	named bool  // files that are written have a name from the first, as where they must; tests have it so
	spent int64 // of Most
	done  int64 // bytes that were moved
}

// spend takes what an entry of size bytes takes of this machine's disk.
func (c *Copy) spend(name string, size int64) error {
	left := c.Most - c.spent - EntryCost
	with := "its " + output.Bytes(size)
	switch {
	case left < 0 || size < 0:
		with = "one entry more"
	case size <= left:
		c.spent += EntryCost + size
		return nil
	}
	return c.TooLarge(name, with)
}

// TooLarge is the error for what would take more of this machine's disk than was allowed.
func (c *Copy) TooLarge(name, with string) error {
	return fault.New(fault.TooLarge, "%s: with %s the copy would write more than %s to this machine", name, with, output.Bytes(c.Most)).
		WithRemedy("if you want all of it, allow more: --max-size SIZE; du -sh --apparent-size in the sandbox says how much it is")
}

// Reader returns a reader of a file's content that shows how far it is; a size below zero is not known.
func (c *Copy) Reader(r io.Reader, name string, size int64) io.Reader {
	return &counted{r: r, c: c, name: name, size: size}
}

// counted shows how far reading is.
type counted struct {
	r    io.Reader
	c    *Copy
	name string
	done int64
	size int64
	err  error // of reading
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.done += int64(n)
	c.c.done += int64(n)
	if c.c.Bar != nil && !c.c.Bar.Bytes(c.name, c.done, c.size) { // many small ones take long together
		c.c.Bar.Count("copying", c.c.done)
	}
	if err != io.EOF {
		c.err = err
	}
	return n, err
}
