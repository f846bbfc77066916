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

// Stat is what the kernel tells of a process in /proc/PID/stat, see proc_pid_stat(5).
type Stat struct {
	Process
	Parent int
	Kernel bool // it is a thread of the kernel's
	// Own is the processor time that it has used, Children that of all that it started,
	// directly or not, and that was waited for. They are exact to a tick of 10 ms.
	Own, Children time.Duration
}

// ReadStat gives that of a process. For one that is gone the error is [fs.ErrNotExist] or ESRCH.
func ReadStat(pid int) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	text := string(b)
	// The name may hold anything, brackets and spaces too.
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	f := strings.Fields(text[shut+1:])
	if open < 0 || shut < open || len(f) < 20 {
		return Stat{}, fmt.Errorf("/proc/%d/stat has another form than expected", pid)
	}
	const first = 3 // of f is field 3
	var bad error
	number := func(field int) uint64 {
		n, err := strconv.ParseUint(f[field-first], 10, 64)
		if err != nil {
			bad = fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		return n
	}
	const (
		thread = 0x200000 // PF_KTHREAD
		tick   = 10 * time.Millisecond
	)
	s := Stat{
		Process: Process{PID: pid, Name: text[open+1 : shut], Start: f[22-first], Dead: f[0] == "Z"},
		Parent:  int(number(4)), Kernel: number(9)&thread != 0,
		Own:      time.Duration(number(14)+number(15)) * tick,
		Children: time.Duration(number(16)+number(17)) * tick,
	}
	if bad != nil {
		return Stat{}, bad
	}
	return s, nil
}
