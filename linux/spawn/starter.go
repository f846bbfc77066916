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
	method Method
	null   int // what is in a place that is not in use
	free   chan *slot
	all    []*slot
}

// slot is what one birth at a time uses.
type slot struct {
	places [maxFiles + 1]int // the numbers for the files of one process 1, and for its program
	plan   *plan             // nil: nothing is born
}

// NewStarter makes one for n starts at a time; a further one waits.
func NewStarter(n int, m Method) (_ *Starter, err error) {
	s := &Starter{method: m, free: make(chan *slot, n)}
	if s.null, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open /dev/null: %w", err)
	}
	for range n {
		slot, err := s.newSlot()
		if err != nil {
			_ = s.Close()
			return nil, err
		}
		s.all = append(s.all, slot)
		s.free <- slot
	}
	return s, nil
}

func (s *Starter) newSlot() (_ *slot, err error) {
	n := new(slot)
	for i := range n.places {
		if n.places[i], err = unix.FcntlInt(uintptr(s.null), unix.F_DUPFD_CLOEXEC, firstPlace); err != nil {
			closeAll(n.places[:i])
			return nil, fmt.Errorf("take a place for a descriptor: %w", err)
		}
	}
	return n, nil
}

// release lets go of what is in a slot. Putting one open file in another's place cannot fail.
func (s *Starter) release(n *slot) {
	for _, fd := range n.places {
		_ = unix.Dup3(s.null, fd, unix.O_CLOEXEC)
	}
	if n.plan != nil {
		n.plan.report.free(s.method)
		n.plan = nil
	}
	s.free <- n
}

// Close lets the slots go. No start is under way, and none follows.
func (s *Starter) Close() error {
	for _, n := range s.all {
		closeAll(n.places[:])
	}
	return unix.Close(s.null)
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
