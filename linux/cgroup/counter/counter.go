// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package counter reads the kernel's counters of what limits have refused.
//
// It is apart from package cgroup because the agent imports it, with files that
// the daemon opened: it must not know paths, versions or limits, and must stay
// on the standard library.
package counter

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// maxSize is far above any counter file; more than that is not one.
const maxSize = 4096

// OOMKills reads how many processes the kernel has killed for lack of memory,
// from memory.oom_control (cgroup v1) or memory.events (v2). It counts up for
// the life of the group. Safe for concurrent use; reads from offset 0 each time.
func OOMKills(f io.ReaderAt) (uint64, error) { return read(f, "oom_kill") }

// PIDsRefused reads how many forks the process limit has refused, from
// pids.events of either version. As for OOMKills.
func PIDsRefused(f io.ReaderAt) (uint64, error) { return read(f, "max") }

func read(f io.ReaderAt, key string) (uint64, error) {
	var buf [maxSize]byte
	n, err := f.ReadAt(buf[:], 0)
	if err != nil && err != io.EOF {
		return 0, fmt.Errorf("read the counter %s: %w", key, err)
	}
	return Parse(buf[:n], key)
}

// Parse returns the number after key in lines of "key number".
func Parse(text []byte, key string) (uint64, error) {
	for line := range bytes.Lines(text) {
		name, value, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if ok && string(name) == key {
			n, err := strconv.ParseUint(string(value), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("the counter %s: %w", key, err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("no counter %s in %.64q", key, text)
}
