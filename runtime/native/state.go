// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/sandbox"
)

// state is what is written of an instance that is up, to find it again.
type state struct {
	PID   int
	Start uint64 // the process's start time, in ticks since boot
	UID   uint32 // base of the uid range
	Boot  string // the host's boot
}

// write writes it as what a symbolic link points to: one call, which is done whole
// or not at all, and no block of the disk's. It is not synced: after a power cut no
// process is left to be found.
func (s state) write(dir *os.Root, id sandbox.ID) error {
	return dir.Symlink(s.String(), string(id)+stateFile)
}

func (s state) String() string { return fmt.Sprintf("%d %d %d %s", s.PID, s.Start, s.UID, s.Boot) }

// mark writes, as write does, that the instance in this state is paused. A mark that
// another life left is written over.
func (s state) mark(dir *os.Root, id sandbox.ID) error {
	name := string(id) + pausedFile
	err := dir.Symlink(s.String(), name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := dir.Remove(name); err != nil {
		return err
	}
	return dir.Symlink(s.String(), name)
}

// marked tells whether the instance was marked in this state, and not in another life.
func (s state) marked(dir *os.Root, id sandbox.ID) (bool, error) {
	text, err := dir.Readlink(string(id) + pausedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return text == s.String(), err
}

// readState gives fs.ErrNotExist where the instance is not up, or was never
// wholly so.
func readState(dir *os.Root, id sandbox.ID) (state, error) {
	text, err := dir.Readlink(string(id) + stateFile)
	if err != nil {
		return state{}, err
	}
	var s state
	if _, err := fmt.Sscanf(text, "%d %d %d %s", &s.PID, &s.Start, &s.UID, &s.Boot); err != nil {
		return state{}, fmt.Errorf("the state %q of sandbox %s: %w", sandbox.Clip(text, 100), id, err)
	}
	return s, nil
}

// alive opens the process that s names, if it is still that process; nil if it
// is gone. An error means that nobody can tell now, which is not "gone": a host
// that is short of descriptors must cost no sandbox its life.
func (s state) alive(boot string) (*os.File, error) {
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
	if err == nil && start == s.Start && !ended(f, 0) {
		return f, nil
	}
	_ = f.Close()
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	return nil, fmt.Errorf("look at process %d: %w", s.PID, err)
}

// ended waits up to the given time for the end of the process behind pidfd.
func ended(pidfd *os.File, wait time.Duration) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}, int(wait/time.Millisecond))
	return err == nil && n > 0
}

// startTime reads field 22 of /proc/PID/stat, see proc_pid_stat(5).
func startTime(pid int) (uint64, error) {
	// By bare calls: a file of the runtime's makes nine of these three.
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("open", err)
	}
	var buf [1024]byte // a line has some 300 bytes, and the kernel gives it whole
	n, err := unix.Read(fd, buf[:])
	_ = unix.Close(fd)
	if err != nil {
		return 0, os.NewSyscallError("read", err)
	}
	b := buf[:n]
	// The name, field 2, may hold anything; what follows the last bracket may not.
	_, rest, ok := bytes.Cut(b[max(0, bytes.LastIndexByte(b, ')')):], []byte(") "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) < 20 {
		return 0, errors.New("/proc/PID/stat has another form than expected")
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// bootID tells this boot of the host from others. It is clipped, so that a state fits
// into an inode: 16 of its digits are 60 random bits.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")
	if err == nil && len(id) < 16 {
		err = fmt.Errorf("%q is not a valid boot id", id)
	}
	if err != nil {
		return "", err
	}
	return id[:16], nil
}
