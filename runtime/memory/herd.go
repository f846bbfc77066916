// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
)

// herd are the processes of a machine: the sessions of its commands, and what
// descends from those.
type herd struct {
	leaders []int
	stopped map[int]bool // by us, and not by one of their own
}

// gather asks the agent which commands it has started, past the gate.
func gather(ctx context.Context, r *running) (*herd, error) {
	list, err := agent.NewClient(r.pipe.dialPast).Processes(ctx)
	if err != nil {
		return nil, err
	}
	h := &herd{stopped: map[int]bool{}}
	for _, p := range list {
		if p.PID <= 1 {
			continue
		}
		if _, err := os.Stat("/proc/" + strconv.Itoa(p.PID)); p.Result != nil && err == nil {
			continue // its number is another's by now, so nothing of its session is left
		}
		h.leaders = append(h.leaders, p.PID)
	}
	return h, nil
}

// uninterrupted is how many rounds a process may take to end a system call that
// no signal interrupts. A longer one waits for a child that is stopped itself.
const uninterrupted = 100

// stop stops them all, and waits until none runs any more. Nothing is forked by
// the agent meanwhile.
func (h *herd) stop(ctx context.Context) error {
	for round, quiet := 0, 0; quiet < 2; round++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		quiet++
		for _, p := range h.live() {
			switch {
			case p.runs, p.calls && !h.stopped[p.pid]:
				// Again where it was stopped and runs: the kernel has what is stopped go on when
				// its group loses its last parent, and the number may be another's by now.
				if unix.Kill(p.pid, unix.SIGSTOP) == nil {
					h.stopped[p.pid] = true
				}
				quiet = 0
			case p.calls && round < uninterrupted:
				quiet = 0
			}
		}
		if quiet == 0 {
			time.Sleep(100 * time.Microsecond) // a signal takes a moment; nothing tells when it is heeded
		}
	}
	return nil
}

// goOn lets those run that stop stopped.
func (h *herd) goOn() {
	for _, p := range h.live() { // and no number that is another's by now
		if h.stopped[p.pid] {
			_ = unix.Kill(p.pid, unix.SIGCONT)
		}
	}
	clear(h.stopped)
}

// memory is what they hold together, in bytes.
func (h *herd) memory() int64 {
	var pages int64
	for _, p := range h.live() {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/statm")
		if f := bytes.Fields(b); err == nil && len(f) > 1 {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			pages += n
		}
	}
	return pages * int64(os.Getpagesize())
}

// member is a process of the herd.
type member struct {
	pid   int
	runs  bool // a thread of it runs, or could
	calls bool // a thread of it is in a system call that no signal interrupts
}

// live reads who is in the herd now.
func (h *herd) live() []member {
	type entry struct{ pid, parent, session int }
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []entry
	in := map[int]bool{}
	for _, name := range names {
		e := entry{}
		state, f := readStat(name)
		if state == 0 || state == 'Z' || state == 'X' {
			continue
		}
		e.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(name)))
		e.parent, _ = strconv.Atoi(string(f[1]))
		e.session, _ = strconv.Atoi(string(f[3]))
		all = append(all, e)
		for _, l := range h.leaders {
			in[e.pid] = in[e.pid] || e.session == l
		}
	}
	for grew := true; grew; {
		grew = false
		for _, e := range all {
			if !in[e.pid] && in[e.parent] {
				in[e.pid], grew = true, true
			}
		}
	}
	var members []member
	for _, e := range all {
		if in[e.pid] {
			members = append(members, look(e.pid))
		}
	}
	return members
}

// look looks at all threads of a process.
func look(pid int) member {
	m := member{pid: pid}
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	for _, name := range tasks {
		switch state, _ := readStat(name); state {
		case 'T', 't', 'Z', 'X', 0:
		case 'D':
			m.calls = true
		default:
			m.runs = true
		}
	}
	return m
}

// readStat returns a process's state, and the fields from there on; zero where it is gone.
func readStat(name string) (state byte, fields [][]byte) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, nil
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 4 {
		return 0, nil
	}
	return f[0][0], f
}
