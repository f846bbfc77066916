// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one of the host's, by its number and when it started, in ticks since boot.
type process struct {
	pid   int
	start uint64
}

// spending is the processor time that a process had until it was looked at.
type spending struct {
	parent process       // zero: not known
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
	all := make(spenders)
	ids, parents := make(map[int]process), make(map[int]int)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
			continue // it ended meanwhile
		case err != nil:
			return nil, err
		case s.kernel:
			continue
		}
		id := process{pid, s.start}
		ids[pid], parents[pid] = id, s.parent
		all[id] = spending{time: s.own + s.children, reaps: true}
	}
	if _, ok := ids[1]; !ok {
		return nil, errUnseen // hidepid, see proc(5)
	}
	for id, s := range all {
		s.parent = ids[parents[id.pid]]
		all[id] = s
	}
	// Whoever loses its parent is its grandparent's or process 1's to wait for: what those waited
	// for may be ours.
	for pid := os.Getpid(); pid > 0; pid = parents[pid] {
		if err := all.alone(ids[pid]); err != nil {
			return nil, err
		}
	}
	if err := all.alone(ids[1]); err != nil {
		return nil, err
	}
	delete(all, ids[os.Getpid()])
	return all, nil
}

// alone leaves out what id waited for.
func (s spenders) alone(id process) error {
	stat, err := readStat(id.pid)
	if err != nil {
		return err
	}
	one := s[id]
	one.time, one.reaps = stat.own, false
	s[id] = one
	return nil
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

type stat struct {
	parent        int
	start         uint64
	kernel        bool
	own, children time.Duration
}

// readStat reads /proc/PID/stat, see proc_pid_stat(5).
func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	line := string(b)
	f := strings.Fields(line[strings.LastIndexByte(line, ')')+1:]) // the name may hold anything
	if len(f) < 20 {
		return stat{}, errors.New("/proc/" + strconv.Itoa(pid) + "/stat has an unknown form")
	}
	n := make([]uint64, 20)
	for i := range n {
		n[i], _ = strconv.ParseUint(f[i], 10, 64) // the state is no number, some are negative: none that is wanted
	}
	const (
		first    = 3        // of f is field 3
		pfThread = 0x200000 // PF_KTHREAD
		tick     = 10 * time.Millisecond
	)
	return stat{
		parent: int(n[4-first]), start: n[22-first], kernel: n[9-first]&pfThread != 0,
		own:      time.Duration(n[14-first]+n[15-first]) * tick,
		children: time.Duration(n[16-first]+n[17-first]) * tick,
	}, nil
}
