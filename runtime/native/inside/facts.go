// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/counter"
	"sandpit.dev/runtime/native/boot"
)

// facts keeps the files that lie over the kernel's own and tell the sandbox's limits and use instead
// of the host's. It is safe for concurrent use.
type facts struct {
	gauges boot.Gauges
	usage  *os.File // cpu.stat of the commands' cgroup2 group
	files  [factFiles]factFile
	total  uint64 // bytes of the host's memory
	most   int    // the host's processors
	boot   int64  // when the host was started, in seconds since 1970

	mu   sync.Mutex
	last time.Time     // of the last writing
	used processorTime // until then
	idle time.Duration
	load [3]float64
}

const (
	factOnline = iota
	factPossible
	factPresent
	factMemory
	factStat
	factLoad
	factFiles
)

// names are those of the files.
func names() [factFiles]string {
	return [...]string{boot.OnlineFact, boot.PossibleFact, boot.PresentFact, boot.MemoryFact, boot.StatFact, boot.LoadFact}
}

// factsEvery is how long what is written is good for.
const factsEvery = 250 * time.Millisecond

// processorTime is what commands have used of the processors.
type processorTime struct{ user, system time.Duration }

func (t processorTime) sum() time.Duration { return t.user + t.system }

// openFacts opens the files below the directory of f, and writes them for the first time.
func openFacts(f boot.Files) (*facts, error) {
	t := &facts{gauges: f.Gauges, most: runtime.NumCPU()}
	open := func(dir *os.File, name string, flags int) (*os.File, error) {
		fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			return nil, &os.PathError{Op: "openat", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), name), nil
	}
	var err error
	t.usage, _ = open(f.Cgroup, "cpu.stat", unix.O_RDONLY) // a kernel without it counts nothing
	for i, name := range names() {
		if t.files[i].f, err = open(f.Facts, name, unix.O_WRONLY); err != nil {
			return nil, err
		}
	}
	_ = f.Facts.Close()
	var host unix.Sysinfo_t
	var since unix.Timespec
	if err := unix.Sysinfo(&host); err != nil {
		return nil, os.NewSyscallError("sysinfo", err)
	}
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return nil, os.NewSyscallError("clock_gettime", err)
	}
	t.total, t.boot = uint64(host.Totalram)*uint64(host.Unit), time.Now().Unix()-since.Sec
	t.used = t.processors() // of a life before this one
	t.refresh()
	return t, nil
}

// refresh writes the files anew, unless that was done a moment ago. What cannot be read is as it
// was, or 0.
func (t *facts) refresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	passed := now.Sub(t.last)
	if !t.last.IsZero() && passed < factsEvery {
		return
	}
	n, used := t.count(), t.processors()
	rate := 0.0
	if !t.last.IsZero() {
		more := used.sum() - t.used.sum()
		rate = more.Seconds() / passed.Seconds()
		t.idle += max(0, passed*time.Duration(n)-more)
		for i, minutes := range [...]float64{1, 5, 15} {
			keep := math.Exp(-passed.Minutes() / minutes)
			t.load[i] = t.load[i]*keep + rate*(1-keep)
		}
	}
	t.last, t.used = now, used

	online := "0\n"
	if n > 1 {
		online = "0-" + strconv.Itoa(n-1) + "\n"
	}
	for _, i := range []int{factOnline, factPossible, factPresent} {
		t.files[i].write([]byte(online))
	}
	t.files[factMemory].write(t.memory())
	run := int(math.Ceil(rate))
	t.files[factStat].write(t.stat(n, run))
	t.files[factLoad].write(fmt.Appendf(nil, "%.2f %.2f %.2f %d/%d 0\n", t.load[0], t.load[1], t.load[2], run, number(t.gauges.Tasks)))
}

// count is how many processors the commands' time is at most that of.
func (t *facts) count() int {
	const period = 100_000 // µs; package cgroup sets no other
	quota := number(t.gauges.CPU)
	if quota == 0 {
		return t.most
	}
	return int(min((quota+period-1)/period, uint64(t.most)))
}

func (t *facts) processors() processorTime {
	text := read(t.usage, statSize)
	µs := func(key string) time.Duration {
		n, err := counter.Parse(text, key)
		if err != nil {
			return 0
		}
		return time.Duration(n) * time.Microsecond
	}
	return processorTime{user: µs("user_usec"), system: µs("system_usec")}
}

// memory is /proc/meminfo of the limit, see proc_meminfo(5). What files hold beside it can be had
// back and is available.
func (t *facts) memory() []byte {
	total := t.total
	if limit := number(t.gauges.MemoryLimit); limit > 0 {
		total = min(total, limit)
	}
	text := read(t.gauges.MemoryStat, statSize)
	of := func(keys ...string) uint64 {
		for _, key := range keys {
			if n, err := counter.Parse(text, key); err == nil {
				return n
			}
		}
		return 0
	}
	// The names of cgroup v1 are first: it has the others with another meaning.
	cached, shared := of("total_cache", "file"), of("total_shmem", "shmem")
	anonymous, slab := of("total_rss", "anon"), of("slab_reclaimable")
	free := total - min(total, number(t.gauges.Memory))
	available := min(total, free+cached-min(cached, shared)+slab)
	var out []byte
	for _, line := range []struct {
		name  string
		bytes uint64
	}{
		{"MemTotal:", total}, {"MemFree:", free}, {"MemAvailable:", available}, {"Buffers:", 0}, {"Cached:", cached}, {"SwapCached:", 0},
		{"Active:", of("total_active_anon", "active_anon") + of("total_active_file", "active_file")},
		{"Inactive:", of("total_inactive_anon", "inactive_anon") + of("total_inactive_file", "inactive_file")},
		{"SwapTotal:", 0}, {"SwapFree:", 0}, {"AnonPages:", anonymous}, {"Shmem:", shared}, {"SReclaimable:", slab},
	} {
		out = fmt.Appendf(out, "%-15s %8d kB\n", line.name, line.bytes>>10)
	}
	return out
}

// stat is /proc/stat of n processors, see proc_stat(5); what is not counted is left out. When the
// host was started stays in it: ps counts from there.
func (t *facts) stat(n, run int) []byte {
	ticks := func(d time.Duration) int64 { return int64(d / (10 * time.Millisecond)) }
	user, system, idle := ticks(t.used.user), ticks(t.used.system), ticks(t.idle)
	out := fmt.Appendf(nil, "cpu  %d 0 %d %d 0 0 0 0 0 0\n", user, system, idle)
	for i := range n {
		out = fmt.Appendf(out, "cpu%d %d 0 %d %d 0 0 0 0 0 0\n", i, user/int64(n), system/int64(n), idle/int64(n))
	}
	return fmt.Appendf(out, "btime %d\nprocs_running %d\nprocs_blocked 0\n", t.boot, run)
}

// factFile is written in place: it lies over a file of the kernel's.
type factFile struct {
	f    *os.File
	size int
}

func (w *factFile) write(b []byte) {
	if _, err := w.f.WriteAt(b, 0); err != nil {
		return // the next time, or never; the commands go on
	}
	if w.size > len(b) {
		_ = w.f.Truncate(int64(len(b)))
	}
	w.size = len(b)
}

// read reads a file of a cgroup's from its beginning, at most so many bytes.
func read(f *os.File, most int) []byte {
	buf := make([]byte, most)
	n, err := f.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return nil // there is none
	}
	return buf[:n]
}

const (
	statSize   = 8 << 10 // memory.stat has less
	numberSize = 64
)

// number is the first number of a gauge; 0: there is none, or no limit.
func number(f *os.File) uint64 {
	first, _, _ := bytes.Cut(bytes.TrimSpace(read(f, numberSize)), []byte(" "))
	n, err := strconv.ParseUint(string(first), 10, 64)
	if err != nil {
		return 0 // "max", "-1", or the null device
	}
	return n
}
