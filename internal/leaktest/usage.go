// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// PSS returns the memory that a process has resident, in bytes: pages that it
// shares count by its share.
func PSS(pid int) (int64, error) {
	return field("/proc/"+strconv.Itoa(pid)+"/smaps_rollup", "Pss:")
}

// RSS returns a process's resident set, in bytes. The error is syscall.ESRCH of one that is ending: its memory is gone before its number.
func RSS(pid int) (int64, error) {
	n, err := field("/proc/"+strconv.Itoa(pid)+"/status", "VmRSS:")
	if errors.Is(err, errNoLine) {
		err = fmt.Errorf("process %d has no resident set: %w", pid, syscall.ESRCH)
	}
	return n, err
}

// Available returns the memory that the host could still provide, in bytes.
func Available() (int64, error) { return field("/proc/meminfo", "MemAvailable:") }

// CPU returns the processor time that a process has used, with that of all that it
// started, directly or not, and that was waited for. It is exact to a tick of
// 10 ms.
func CPU(pid int) (time.Duration, error) {
	s, err := ReadStat(pid)
	return s.Own + s.Children, err
}

var errNoLine = errors.New("there is no such line")

func field(path, name string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", path, err)
			}
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("%s: %s: %w", path, name, errNoLine)
}
