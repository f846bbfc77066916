// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Files is how many files are open, of how many that may be.
type Files struct {
	Server, ServerLimit int64 // of this process
	Host, HostLimit     int64 // of the whole machine
}

// ReadFiles reads how many files are open.
func ReadFiles() (f Files, err error) {
	own, err := os.Open("/proc/self/fd")
	if err != nil {
		return f, err
	}
	names, err := own.Readdirnames(-1)
	_ = own.Close()
	if err != nil {
		return f, err
	}
	f.Server = int64(len(names)) - 1 // without own
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return f, fmt.Errorf("the limit of open files: %w", err)
	}
	f.ServerLimit = int64(min(limit.Cur, 1<<62))
	b, err := os.ReadFile("/proc/sys/fs/file-nr")
	if err != nil {
		return f, err
	}
	words := bytes.Fields(b) // open, free of those, most
	if len(words) != 3 {
		return f, fmt.Errorf("/proc/sys/fs/file-nr is %q", b)
	}
	for word, to := range map[int]*int64{0: &f.Host, 2: &f.HostLimit} {
		if *to, err = strconv.ParseInt(string(words[word]), 10, 64); err != nil {
			return f, fmt.Errorf("/proc/sys/fs/file-nr: %w", err)
		}
	}
	return f, nil
}
