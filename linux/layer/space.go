// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

const (
	// lookEvery is the least time between two looks at the disks, and lookAtLeast the most: the
	// more room there is, the longer takes what would fill it, at fillRate bytes a second.
	lookEvery   = time.Second
	lookAtLeast = 10 * time.Second
	fillRate    = gib
	// reclaimEvery is how many looks there are between two times that a full store is told to
	// free what was deleted.
	reclaimEvery = 3
	// enough is the room that something new needs, and twice as much where there was none
	// before: what is refused and what is taken does not change with each look.
	enough = 32 * mib
	// coarse is the least change of the limit of all disks together that is worth one, while
	// they may still take much more than that.
	coarse = 16 * mib
)

// Space is what a look at the disks saw.
type Space struct {
	// SizeBytes and FreeBytes are of the file system that holds the layers, its reserve
	// included; HostSizeBytes and HostFreeBytes of the one that the data directory is on.
	SizeBytes, FreeBytes         int64
	HostSizeBytes, HostFreeBytes int64
	// RoomBytes is what the disks may still take together, of the store and of the host.
	RoomBytes int64
	// Full says why nothing new is begun; nil: it is.
	Full *fault.Error
	// Failed says why nothing at all can be done with the store; nil: it can.
	Failed *fault.Error
}

// Space returns what the last look saw. It costs nothing.
func (s *Store) Space() Space {
	if seen := s.space.Load(); seen != nil {
		return *seen
	}
	return Space{}
}

// Room returns why nothing new is to be begun, a Full error of the store or of the host, or
// nil. It costs nothing.
func (s *Store) Room() error {
	if seen := s.space.Load(); seen != nil && seen.Full != nil {
		return seen.Full
	}
	return nil
}

// FullDisk returns which disk has no room for all disks together, the store's or the host's,
// and "" where they may take more. It looks now, since writers are faster than the looks.
func (s *Store) FullDisk() fault.Disk {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.top >= 0 {
		s.look()
	}
	if seen := s.Space(); seen.Full != nil {
		return seen.Full.Disk
	}
	return ""
}

// blame has an error of a full disk name the host's, where that is why no disk may take more.
func (s *Store) blame(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Full {
		if seen := s.Space(); seen.Full != nil {
			f.Disk, f.Remedy = seen.Full.Disk, seen.Full.Remedy
		}
	}
	return err
}

// Failed is told when the file system of a loop store has become read-only after an error.
// Every call fails from then on, until Remount.
func (s *Store) Failed() <-chan struct{} { return s.failing }

// watch looks at the disks until Close.
func (s *Store) watch() {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	var seen sample
	for n := 0; ; n++ {
		select {
		case <-s.ending:
			return
		case <-timer.C:
		}
		s.mu.RLock()
		if s.top >= 0 {
			s.lent.Store(false)
			if now := s.sample(); now.differs(seen, s.Space().RoomBytes) || s.Space().RoomBytes < 16*coarse || s.Space().Failed != nil {
				s.look()
				seen = now
			}
			if seen := s.Space(); s.loop != nil && seen.Full != nil && seen.Failed == nil && n%reclaimEvery == 0 {
				_ = reclaim(s.top) // an error shows at the next look
			}
		}
		s.mu.RUnlock()
		timer.Reset(min(max(lookEvery, time.Duration(s.Space().RoomBytes/fillRate)*time.Second), lookAtLeast))
	}
}

// sample is what two system calls say of the disks. Where it is nearly as before and there
// is much room, there is nothing to look at.
type sample struct {
	storeFree, hostFree int64 // bytes
	flags               int64
}

// differs reports whether g is far enough from an earlier sample, at so many bytes of room,
// to look: what others write on a large disk is no reason.
func (g sample) differs(from sample, room int64) bool {
	far := max(coarse, room/16)
	return g.flags != from.flags || max(g.storeFree-from.storeFree, from.storeFree-g.storeFree) >= far ||
		max(g.hostFree-from.hostFree, from.hostFree-g.hostFree) >= far
}

func (s *Store) sample() sample {
	var store, host unix.Statfs_t
	if err := unix.Fstatfs(s.top, &store); err != nil {
		return sample{flags: -1}
	}
	if s.loop != nil {
		if err := unix.Fstatfs(int(s.loop.file.Fd()), &host); err != nil {
			return sample{flags: -1}
		}
	}
	return sample{int64(store.Bfree) * store.Bsize, int64(host.Bavail) * host.Bsize, store.Flags}
}

// look sees how full the disks are, and bounds what may still be written.
func (s *Store) look() {
	s.looking.Lock()
	defer s.looking.Unlock()
	before := s.Space()
	now := Space{Failed: before.Failed}
	var h holdings
	if s.group != 0 { // first: what is written meanwhile is missed in both or counted twice
		h = s.readHoldings()
	}
	var st, host unix.Statfs_t
	if err := unix.Fstatfs(s.top, &st); err != nil {
		s.trouble("the store does not say how full it is", err)
		return
	}
	now.SizeBytes, now.FreeBytes = int64(st.Blocks)*int64(st.Bsize), int64(st.Bavail)*int64(st.Bsize)
	host = st
	if s.loop != nil {
		if err := unix.Fstatfs(int(s.loop.file.Fd()), &host); err != nil {
			s.trouble("the host's disk does not say how full it is", err)
			return
		}
		if now.Failed == nil && st.Flags&unix.ST_RDONLY != 0 {
			now.Failed = failedStore()
		}
	}
	now.HostSizeBytes, now.HostFreeBytes = int64(host.Blocks)*int64(host.Bsize), int64(host.Bavail)*int64(host.Bsize)
	storeRoom, hostRoom := now.FreeBytes, now.HostFreeBytes-hostReserve(now.HostSizeBytes)
	if s.loop != nil && now.Failed == nil {
		total, free, err := s.readMetadata()
		if err == nil {
			err = s.back(total)
		}
		if err != nil {
			s.trouble("the host's disk may have no room for metadata of the store", err)
		}
		storeRoom += free - storeReserve(now.SizeBytes)
		hostRoom -= s.unbacked(&st)
		if s.group != 0 {
			storeRoom, hostRoom = s.bounded(h, now.SizeBytes, storeRoom, hostRoom)
		}
	}
	now.RoomBytes = max(0, min(storeRoom, hostRoom))
	need := min(enough, now.HostSizeBytes/64)
	if before.Full != nil {
		need *= 2
	}
	switch {
	case hostRoom < need:
		now.Full = fault.NoSpace(fault.HostDisk, nil, "the disk of the host is full: %d MiB are free, and %d MiB are kept in reserve", now.HostFreeBytes/mib, hostReserve(now.HostSizeBytes)/mib).
			WithRemedy("free space in the file system of the data directory, or delete sandboxes and snapshots that are not needed")
	case storeRoom < need && s.loop != nil:
		now.Full = fault.NoSpace(fault.StoreDisk, nil, "the disk that all sandboxes share is full: %d MiB are free, and %d MiB are kept in reserve", now.FreeBytes/mib, storeReserve(now.SizeBytes)/mib).
			WithRemedy("delete sandboxes, snapshots or volumes that are not needed, or give the store a larger disk")
	}
	s.space.Store(&now)
	s.report(before, now)
}

// trouble logs what a look could not do, once and not at each look.
func (s *Store) trouble(what string, err error) {
	if text := what + ": " + err.Error(); text != s.troubled {
		s.troubled = text
		s.log.Warn(what, "error", err)
	}
}

// report writes what has changed to the log, and signals a failure.
func (s *Store) report(before, now Space) {
	switch {
	case before.Full == nil && now.Full != nil:
		s.log.Warn("nothing new is begun: "+now.Full.Message, "disk", string(now.Full.Disk), "remedy", now.Full.Remedy)
	case before.Full != nil && now.Full == nil:
		s.log.Info("there is space again, and new sandboxes are taken", "store_free_bytes", now.FreeBytes, "host_free_bytes", now.HostFreeBytes)
	}
	if before.Failed == nil && now.Failed != nil {
		s.log.Error(now.Failed.Message, "host_free_bytes", now.HostFreeBytes, "remedy", now.Failed.Remedy)
		select {
		case s.failing <- struct{}{}:
		default:
		}
	}
}

func failedStore() *fault.Error {
	err := fault.New(fault.Unavailable, "the disk of all sandboxes failed: its file system has become read-only after an error of the disk below")
	err.Retry = 5 * time.Second
	return err.WithRemedy("free space in the file system of the data directory if it is full; the server then mounts the store again by itself. The kernel's log has the error")
}

// bounded bounds the room of the store and of the host by what the disks hold and what is on
// its way to them, and makes the smaller one the limit of all disks together: writers are
// refused before btrfs, or the host, has no room.
func (s *Store) bounded(h holdings, size, storeRoom, hostRoom int64) (int64, int64) {
	if h.err != nil {
		s.trouble("what all disks hold together is not known", h.err)
		return storeRoom, hostRoom
	}
	// What is free lags behind what is held while much is written: the size does not.
	storeRoom = min(storeRoom-h.unwritten, size-storeReserve(size)-h.beside-h.used)
	hostRoom -= h.unwritten
	room := max(0, min(storeRoom, hostRoom))
	step := int64(coarse)
	if room < 16*coarse {
		step = mib
	}
	if limit := h.used + room; limit >= h.limit+step || limit <= h.limit-step {
		if err := setLimit(s.top, s.group, limit); err != nil {
			s.trouble("the limit of all disks together cannot be set", err)
		}
	}
	return storeRoom, hostRoom
}

// lend has room for the mount of a disk that exists while all disks together may hold no more:
// what is in them can be deleted once they are up. Between two looks it does so once, and
// never out of the last half of a reserve.
func (s *Store) lend() error {
	seen := s.Space()
	if s.group == 0 || seen.Full == nil || 2*seen.FreeBytes < storeReserve(seen.SizeBytes) || 2*seen.HostFreeBytes < hostReserve(seen.HostSizeBytes) {
		return nil
	}
	h := s.readHoldings()
	if h.err != nil || h.limit-h.used >= mountRoom || s.lent.Swap(true) {
		return h.err
	}
	return setLimit(s.top, s.group, h.used+2*mountRoom)
}

// unbacked is what the store's file system holds and its file does not: what was set aside in
// sandboxes with fallocate and takes the host's space when it is written, which no quota sees.
func (s *Store) unbacked(st *unix.Statfs_t) int64 {
	var file unix.Stat_t
	if err := unix.Fstat(int(s.loop.file.Fd()), &file); err != nil {
		return 0
	}
	held := int64(st.Blocks-st.Bfree) * int64(st.Bsize)
	return max(0, held-file.Blocks*512)
}
