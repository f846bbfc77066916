// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"

	"golang.org/x/sys/unix"
)

// maxChain is how many directories a chain holds open, beside its top. The depth of
// a tree is its owner's choice.
const maxChain = 16

// errMoved: a directory is not where it was. The tree changes while it is read.
var errMoved = errors.New("a directory was moved while its tree was read")

// A chain is the way from the top of a tree to one of its directories, by open
// directories. It goes down by names without following links, and up by what it
// keeps open, or else by "..", which it checks.
type chain struct {
	links []link
}

type link struct {
	fd       int // -1: closed, as it is far from the end
	dev, ino uint64
}

// openChain begins a chain at the directory name in dir.
func openChain(dir int, name string) (*chain, error) {
	c := &chain{}
	fd, err := openDir(dir, name)
	if err != nil {
		return nil, err
	}
	return c, c.add(fd)
}

func (c *chain) add(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return err
	}
	c.links = append(c.links, link{fd: fd, dev: st.Dev, ino: st.Ino})
	if far := len(c.links) - 1 - maxChain; far > 0 {
		unix.Close(c.links[far].fd)
		c.links[far].fd = -1
	}
	return nil
}

// depth is how far below its top the chain ends.
func (c *chain) depth() int { return len(c.links) - 1 }

// fd is the directory at the end. It is the chain's own.
func (c *chain) fd() int { return c.links[len(c.links)-1].fd }

// down goes into a directory at the end.
func (c *chain) down(name string) error {
	fd, err := openDir(c.fd(), name)
	if err != nil {
		return err
	}
	return c.add(fd)
}

// up goes back by one, and reports whether the directory there was opened anew. After an
// error the chain is of no use.
func (c *chain) up() (opened bool, err error) {
	last := len(c.links) - 1
	end, to := c.links[last], &c.links[last-1]
	if to.fd < 0 {
		fd, err := openDir(end.fd, "..")
		if err != nil {
			return false, err
		}
		to.fd, opened = fd, true
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return false, err
		}
		if st.Dev != to.dev || st.Ino != to.ino {
			return false, errMoved
		}
	}
	unix.Close(end.fd)
	c.links = c.links[:last]
	return opened, nil
}

func (c *chain) close() {
	for _, l := range c.links {
		if l.fd >= 0 {
			unix.Close(l.fd)
		}
	}
	c.links = nil
}
