// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// ReadLog reads the record of a process from its log in dir, which an agent that is gone kept
// there. The content of dir is not trusted. The result is the process's own if the log is
// complete; else it has ExitCode -1, the cause host, what the log's frames hold, and the reason
// CutAgent. A process without a log is fault.NotFound.
func ReadLog(dir *os.File, processID string) (sandbox.Process, error) {
	none := fault.New(fault.NotFound, "there is no log of the process %q", sandbox.Clip(processID, 80))
	if !sandbox.ValidID(processID) {
		return sandbox.Process{}, none
	}
	fd, err := unix.Openat(int(dir.Fd()), wire.LogName(processID), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return sandbox.Process{}, none
	}
	f := os.NewFile(uintptr(fd), "log")
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return sandbox.Process{}, none
	}
	w, err := wire.ReadLog(f, st.Size(), processID)
	if err != nil {
		return sandbox.Process{}, none
	}
	return record(w, processID)
}
