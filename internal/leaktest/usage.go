// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// PSS returns the memory that a process has resident, in bytes: pages that it
// shares count by its share.
func PSS(pid int) (int64, error) {
	return field("/proc/"+strconv.Itoa(pid)+"/smaps_rollup", "Pss:")
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
	return 0, fmt.Errorf("%s has no line %s", path, name)
}
