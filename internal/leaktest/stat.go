// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Stat is what the kernel reports of a process in /proc/PID/stat, see proc_pid_stat(5).
type Stat struct {
	Process
	Parent int
	Kernel bool // it is a thread of the kernel's
	Runs   bool // it runs, or waits for a processor
	// Own is the processor time that it has used, Children that of all that it started,
	// directly or not, and that was waited for. They are exact to a tick of 10 ms.
	Own, Children time.Duration
}

// ReadStat returns that of a process. For one that is gone the error is [fs.ErrNotExist] or ESRCH.
func ReadStat(pid int) (Stat, error) { return readStat("/proc/"+strconv.Itoa(pid)+"/stat", pid) }

// Runs reports whether a thread of a process runs, or waits for a processor.
func Runs(pid int) (bool, error) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	list, err := os.ReadDir(tasks)
	if err != nil {
		return false, err
	}
	for _, task := range list {
		s, err := readStat(tasks+"/"+task.Name()+"/stat", pid)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH): // it has ended
		case err != nil:
			return false, err
		case s.Runs:
			return true, nil
		}
	}
	return false, nil
}

func readStat(path string, pid int) (Stat, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Stat{}, err
	}
	text := string(b)
	// The name may hold anything, brackets and spaces too.
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	f := strings.Fields(text[shut+1:])
	if open < 0 || shut < open || len(f) < 20 {
		return Stat{}, fmt.Errorf("%s has another form than expected", path)
	}
	const first = 3 // of f is field 3
	var bad error
	number := func(field int) uint64 {
		n, err := strconv.ParseUint(f[field-first], 10, 64)
		if err != nil {
			bad = fmt.Errorf("%s: %w", path, err)
		}
		return n
	}
	const (
		thread = 0x200000 // PF_KTHREAD
		tick   = 10 * time.Millisecond
	)
	s := Stat{
		Process: Process{PID: pid, Name: text[open+1 : shut], Start: f[22-first], Dead: f[0] == "Z"},
		Parent:  int(number(4)), Kernel: number(9)&thread != 0, Runs: f[0] == "R",
		Own:      time.Duration(number(14)+number(15)) * tick,
		Children: time.Duration(number(16)+number(17)) * tick,
	}
	if bad != nil {
		return Stat{}, bad
	}
	return s, nil
}
