// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"hash/fnv"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// slotCount is how many snapshots can be made at once. The kernel locks the
// directory that a snapshot is made in through a whole commit: in one directory
// they come one by one, in several they share commits.
const slotCount = 16

// slots are directories in one directory. Who makes, renames or removes something
// in a slot holds its mutex: waiting in the kernel instead, on a directory's lock, a
// rename would hold up every other rename of the file system, those in sandboxes too.
type slots struct {
	slot [slotCount]slot
	free chan *slot // of those that are taken for a while, see take
}

type slot struct {
	mu  sync.Mutex
	dir int
}

func openSlots(top int, name string) (*slots, error) {
	s := &slots{free: make(chan *slot, slotCount)}
	for i := range s.slot {
		s.slot[i].dir = -1
	}
	base, err := ensureDir(top, name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(base)
	for i := range s.slot {
		if s.slot[i].dir, err = ensureDir(base, strconv.FormatInt(int64(i), slotCount)); err != nil {
			s.close()
			return nil, err
		}
		s.free <- &s.slot[i]
	}
	return s, nil
}

// of returns the slot where id is kept for good, locked.
func (s *slots) of(id string) *slot {
	slot := s.at(id)
	slot.mu.Lock()
	return slot
}

// at returns the slot where id is kept for good.
func (s *slots) at(id string) *slot {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return &s.slot[h.Sum32()%slotCount]
}

// take returns a slot that nobody else has until it is given back.
func (s *slots) take(ctx context.Context) (*slot, error) {
	select {
	case slot := <-s.free:
		return slot, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *slots) give(slot *slot) { s.free <- slot }

func (s *slots) close() {
	for i := range s.slot {
		if s.slot[i].dir >= 0 {
			unix.Close(s.slot[i].dir)
		}
	}
}

// names lists what is in all slots, in no order.
func (s *slots) names() ([]string, error) {
	var all []string
	for i := range s.slot {
		some, err := names(s.slot[i].dir)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
