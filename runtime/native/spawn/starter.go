// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// maxFiles is how many descriptors process 1 can get.
const maxFiles = 8

// firstPlace is the least number of a place, so that no target of a copy in process 1 is
// the source of a later one.
const firstPlace = 2 * maxFiles

// Starter starts process 1s. It keeps places for what they get: low numbers in the table of
// descriptors, taken while that is small. A child copies the table up to them, and not what all
// the sandboxes of a server have open. It is safe for concurrent use.
type Starter struct {
	null int // what is in a place that is not in use
	free chan places
	all  []places
}

// places are the numbers for the files of one process 1, and for its program.
type places [maxFiles + 1]int

// NewStarter makes one for n starts at a time; a further one waits.
func NewStarter(n int) (_ *Starter, err error) {
	s := &Starter{free: make(chan places, n)}
	if s.null, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open /dev/null: %w", err)
	}
	for range n {
		var p places
		for i := range p {
			if p[i], err = unix.FcntlInt(uintptr(s.null), unix.F_DUPFD_CLOEXEC, firstPlace); err != nil {
				closeAll(p[:i])
				_ = s.Close()
				return nil, fmt.Errorf("take a place for a descriptor: %w", err)
			}
		}
		s.all = append(s.all, p)
		s.free <- p
	}
	return s, nil
}

// clear lets go of what is in the places. Putting one open file in another's place cannot fail.
func (s *Starter) clear(p places) {
	for _, fd := range p {
		_ = unix.Dup3(s.null, fd, unix.O_CLOEXEC)
	}
}

// Close lets the places go. No start is under way, and none follows.
func (s *Starter) Close() error {
	for _, p := range s.all {
		closeAll(p[:])
	}
	return unix.Close(s.null)
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
