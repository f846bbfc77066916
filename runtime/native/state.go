// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	"encoding/json"
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
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // the process's start time, in ticks since boot
	Boot  string `json:"boot"`  // the host's boot id
	UID   uint32 `json:"uid"`   // base of the uid range
}

const stateFile = "state"

// write writes the file in one call, so that it is there whole or empty: a
// server that is killed in between leaves a process that ends by itself. It is
// not synced: after a power cut no process is left to be found.
func (s state) write(dir *os.Root, id sandbox.ID) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return dir.WriteFile(string(id)+"/"+stateFile, b, 0o600)
}

// readState gives fs.ErrNotExist where the instance is not up, or was never
// wholly so.
func readState(dir *os.Root, id sandbox.ID) (state, error) {
	b, err := dir.ReadFile(string(id) + "/" + stateFile)
	if err != nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		// Cut off by a full disk or a power cut: then its process was never
		// told to begin, or is gone with the host.
		return state{}, fs.ErrNotExist
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
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name, field 2, may hold anything; what follows the last bracket may not.
	_, rest, ok := bytes.Cut(b[max(0, bytes.LastIndexByte(b, ')')):], []byte(") "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) < 20 {
		return 0, errors.New("/proc/PID/stat has another form than expected")
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
