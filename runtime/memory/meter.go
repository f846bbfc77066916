// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime"
)

var _ runtime.Meter = (*instance)(nil)

// Use looks at the commands' processes, and walks through the disk: here are no groups that count.
// Processor time is that of processes that live and of what they waited for, and the most
// that was seen.
func (i *instance) Use(ctx context.Context) (runtime.Use, error) {
	i.m.verb.Lock()
	defer i.m.verb.Unlock()
	r, err := i.m.running()
	if err != nil {
		return runtime.Use{}, err
	}
	processes := r.paused
	if processes == nil {
		if processes, err = gather(ctx, r); err != nil {
			return runtime.Use{}, err
		}
	}
	u := runtime.Use{MemoryBytes: processes.memory(), MemoryPeak: -1}
	var cpu time.Duration
	for _, p := range processes.live() {
		cpu += used(p.pid)
		threads, _ := os.ReadDir("/proc/" + strconv.Itoa(p.pid) + "/task")
		u.Tasks += int64(max(len(threads), 1))
	}
	r.cpu = max(r.cpu, cpu)
	u.CPU = r.cpu
	u.DiskBytes = holds(i.m.disk())
	return u, nil
}

// tick is the unit of the times in /proc: it is 10 ms on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// used is the processor time of a process and of its children that it waited for.
func used(pid int) (total time.Duration) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const first, last = 11, 14 // utime, stime, cutime, cstime
	for n := first; n <= last && n < len(f); n++ {
		ticks, _ := strconv.ParseInt(string(f[n]), 10, 64)
		total += time.Duration(ticks) * tick
	}
	return total
}

// holds is what the files of a tree take, in bytes, as far as they can be seen.
func holds(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went meanwhile
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*unix.Stat_t); ok {
				bytes += st.Blocks * 512
			} else {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}
