// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"sandpit.dev/internal/leaktest"
)

// process is one of the host's, by its number and when it started, in ticks since boot.
type process struct {
	pid   int
	start string
}

// spending is the processor time that a process had until it was looked at.
type spending struct {
	parent process
	time   time.Duration // its own, and what it waited for had
	reaps  bool          // time holds what it waited for
}

// spenders are the processes of the host that the benchmark did not start. The kernel's own
// threads are none: what they do is for the benchmark most of the time, and nothing tells for whom.
//
// What the benchmark itself and those below it spend cannot be subtracted from the machine's time
// instead: no rusage holds what nobody waits for, and in a sandbox the kernel reaps.
type spenders map[process]spending

// errUnseen: the host's processes cannot be seen from here.
var errUnseen = errors.New("not all of the host's processes can be seen")

// firstPIDs is the inode of the host's own namespace of process ids, PROC_PID_INIT_INO in
// the kernel's linux/proc_ns.h.
const firstPIDs = "pid:[4026531836]"

// lookAround reads them while nothing of the benchmark runs but this process.
func lookAround() (spenders, error) {
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != firstPIDs {
		return nil, errUnseen
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	stats := make(map[int]leaktest.Stat)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		switch s, err := leaktest.ReadStat(pid); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH): // it ended meanwhile
		case err != nil:
			return nil, err
		case !s.Kernel:
			stats[pid] = s
		}
	}
	if _, ok := stats[1]; !ok {
		return nil, errUnseen // hidepid, see proc(5)
	}
	// Who loses its parent is for one further up to wait for, process 1 in the end: what those
	// waited for may be ours.
	above := map[int]bool{1: true}
	for pid := stats[os.Getpid()].Parent; pid > 0; pid = stats[pid].Parent {
		above[pid] = true
	}
	all := make(spenders)
	for pid, s := range stats {
		if pid == os.Getpid() {
			continue
		}
		one := spending{parent: process{s.Parent, stats[s.Parent].Start}, time: s.Own, reaps: !above[pid]}
		if one.reaps {
			one.time += s.Children
		}
		all[process{pid, s.Start}] = one
	}
	return all, nil
}

// since is what they spent after an earlier look. Who is gone was waited for by its parent,
// whose time holds all of it, also what is from before.
func (s spenders) since(before spenders) time.Duration {
	var spent time.Duration
	for id, now := range s {
		spent += now.time - before[id].time
	}
	for id, was := range before {
		if _, there := s[id]; !there && s[was.parent].reaps {
			spent -= was.time
		}
	}
	return max(0, spent)
}
