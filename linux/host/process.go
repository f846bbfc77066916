// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Ended waits up to the given time for the end of the process behind pidfd, and reports
// whether it came.
func Ended(pidfd *os.File, wait time.Duration) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}, int(wait/time.Millisecond))
	return err == nil && n > 0
}

// Kill ends the process behind pidfd. One that is gone, and been freed by its
// watcher meanwhile, is fine: the descriptor is held while the signal is sent.
func Kill(pidfd *os.File) error {
	rc, err := pidfd.SyscallConn()
	if err != nil {
		return nil
	}
	var serr error
	if err := rc.Control(func(fd uintptr) { serr = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) }); err != nil {
		return nil // closed: its watcher saw the end
	}
	if errors.Is(serr, unix.ESRCH) {
		return nil
	}
	return serr
}

// OpenNetwork opens the network namespace of the process behind pidfd, whose number is pid. It fails
// where the process has ended: the number may be another's by then.
func OpenNetwork(pid int, pidfd *os.File) (*os.File, error) { return openNamespace(pid, pidfd, "net") }

func openNamespace(pid int, pidfd *os.File, kind string) (*os.File, error) {
	ns, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/" + kind)
	if err != nil {
		return nil, err
	}
	if Ended(pidfd, 0) {
		_ = ns.Close()
		return nil, os.ErrProcessDone
	}
	return ns, nil
}

// OpenMounts is OpenNetwork of its mount namespace.
func OpenMounts(pid int, pidfd *os.File) (*os.File, error) { return openNamespace(pid, pidfd, "mnt") }

// startTime reads field 22 of /proc/PID/stat, see proc_pid_stat(5).
func startTime(pid int) (uint64, error) {
	// By bare calls: a file of the runtime's makes nine of these three.
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("open", err)
	}
	var buf [1024]byte // a line has some 300 bytes, and the kernel writes it at once
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
