// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// The files of an instance in the directory of [Instances] are its id with one of these after it.
const (
	StateFile  = ".state"  // what finds its process again
	PausedFile = ".paused" // as the state; only while it is paused
)

// State names the first process of an instance that is up, so that the next server finds it.
type State struct {
	PID   int
	Start uint64 // the process's start time, in ticks since boot
	UID   uint32 // base of the uid range
	Boot  string // the host's boot
}

// StateOf returns the state of a process that runs.
func StateOf(pid int, uid uint32, boot string) (State, error) {
	start, err := startTime(pid)
	return State{PID: pid, Start: start, UID: uid, Boot: boot}, err
}

// Write writes the state as what a symbolic link points to: one call, which is done whole
// or not at all, and no block of the disk's. It is not synced: after a power cut no
// process is left to be found.
func (s State) Write(dir *os.Root, id string) error { return dir.Symlink(s.String(), id+StateFile) }

func (s State) String() string { return fmt.Sprintf("%d %d %d %s", s.PID, s.Start, s.UID, s.Boot) }

// MarkPaused writes, as Write does, that the instance in this state is paused. A mark that
// another life left is written over.
func (s State) MarkPaused(dir *os.Root, id string) error {
	name := id + PausedFile
	err := dir.Symlink(s.String(), name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := dir.Remove(name); err != nil {
		return err
	}
	return dir.Symlink(s.String(), name)
}

// Paused reports whether the instance was marked in this state, and not in another life.
func (s State) Paused(dir *os.Root, id string) (bool, error) {
	text, err := dir.Readlink(id + PausedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return text == s.String(), err
}

// ReadState returns fs.ErrNotExist where the instance is not up, or never was completely.
func ReadState(dir *os.Root, id string) (State, error) {
	text, err := dir.Readlink(id + StateFile)
	if err != nil {
		return State{}, err
	}
	var s State
	if _, err := fmt.Sscanf(text, "%d %d %d %s", &s.PID, &s.Start, &s.UID, &s.Boot); err != nil {
		return State{}, fmt.Errorf("the state %.100q of %s: %w", text, id, err)
	}
	return s, nil
}

// Open opens the process that s names, if it is still that process, as a pidfd; nil if it
// is gone. An error means that it cannot be known now, which is not "gone": a host
// that is short of descriptors must cost no sandbox its life.
func (s State) Open(boot string) (*os.File, error) {
	if s.Boot != boot || s.PID <= 1 {
		return nil, nil
	}
	fd, err := unix.PidfdOpen(s.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", s.PID, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	// The descriptor is held: the number cannot pass to another process now.
	start, err := startTime(s.PID)
	if err == nil && start == s.Start && !Ended(f, 0) {
		return f, nil
	}
	_ = f.Close()
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	return nil, fmt.Errorf("look at process %d: %w", s.PID, err)
}
