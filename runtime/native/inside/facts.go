// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/counter"
	"sandpit.dev/runtime/native/boot"
)

// facts keeps the files that lie over the kernel's own and tell the sandbox's limits and use instead
// of the host's. It is safe for concurrent use.
type facts struct {
	gauges boot.Gauges
	usage  *os.File // cpu.stat of the commands' cgroup2 group
	files  map[string]*factFile
	total  uint64 // bytes of the host's memory
	most   int    // the host's processors
	boot   int64  // when the host was started, in seconds since 1970
	first  uint32 // which of the host's processors programs are told of first
	// setBytes is how much the kernel writes of a set of processors, possible is one more than the
	// highest number of one.
	setBytes, possible int

	mu   sync.Mutex
	last time.Time     // of the last writing
	used processorTime // until then
	idle time.Duration
	load [3]float64

	memory memoryUse
}

// factsEvery is how long what is written is good for.
const factsEvery = 250 * time.Millisecond

// processorTime is what commands have used of the processors.
type processorTime struct{ user, system time.Duration }

func (t processorTime) sum() time.Duration { return t.user + t.system }

// openFacts opens the files below the directory of f, and writes them for the first time.
func openFacts(f boot.Files) (*facts, error) {
	t := &facts{gauges: f.Gauges, most: runtime.NumCPU(), first: rand.Uint32(), files: map[string]*factFile{}}
	if fd, err := openAt(f.Cgroup, "cpu.stat", unix.O_RDONLY); err == nil { // a kernel without it counts nothing
		t.usage = os.NewFile(uintptr(fd), "cpu.stat")
	}
	for _, name := range boot.Facts() {
		fd, err := openAt(f.Facts, name, unix.O_WRONLY)
		if err != nil {
			return nil, err
		}
		t.files[name] = &factFile{fd: fd}
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
	if err := t.lookAtProcessors(); err != nil {
		return nil, err
	}
	t.used = t.processors() // of a life before this one
	t.refresh()
	return t, nil
}

func openAt(dir *os.File, name string, flags int) (int, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, &os.PathError{Op: "openat", Path: name, Err: err}
	}
	return fd, nil
}

// lookAtProcessors finds how high the numbers of processors get, and how much the kernel says of them.
func (t *facts) lookAtProcessors() error {
	var set unix.CPUSet
	n, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	if errno != 0 {
		return os.NewSyscallError("sched_getaffinity", errno)
	}
	t.setBytes = int(n)
	for cpu := range 8 * t.setBytes {
		if set.IsSet(cpu) {
			t.possible = cpu + 1
		}
	}
	return nil
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

	t.memory = t.memoryUse()
	run := int(math.Ceil(rate))
	for name, text := range map[string][]byte{
		boot.OnlineFact: span(n),
		// Programs have memory for each processor that there may be, and find theirs by
		// its number in the host: these are no limit.
		boot.PossibleFact:  span(t.possible),
		boot.MemoryFact:    t.memory.meminfo(),
		boot.StatFact:      t.stat(n, run),
		boot.LoadFact:      fmt.Appendf(nil, "%.2f %.2f %.2f %d/%d 0\n", t.load[0], t.load[1], t.load[2], run, number(t.gauges.Tasks)),
		boot.CPUMaxFact:    limit(number(t.gauges.CPU), " "+strconv.Itoa(period)),
		boot.MemoryMaxFact: limit(number(t.gauges.MemoryLimit), ""),
		// What can be had back is in it, as in the kernel's.
		boot.MemoryCurrentFact: fmt.Appendln(nil, number(t.gauges.Memory)),
	} {
		t.files[name].write(text)
	}
}

// span is the list of the first n processors.
func span(n int) []byte {
	if n == 1 {
		return []byte("0\n")
	}
	return fmt.Appendf(nil, "0-%d\n", n-1)
}

// limit is n as cgroup2 writes it; 0: there is none.
func limit(n uint64, after string) []byte {
	if n == 0 {
		return []byte("max" + after + "\n")
	}
	return fmt.Appendf(nil, "%d%s\n", n, after)
}

// period is that of the limit of processor time, in µs; package cgroup sets no other.
const period = 100_000

// count is how many processors the commands' time is at most that of.
func (t *facts) count() int {
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

// memoryUse is what commands may use of memory and do, in bytes. What files hold beside it can be had
// back and is available.
type memoryUse struct {
	total, free, available, cached, shared, slab uint64

	anonymous, active, inactive uint64
}

func (t *facts) memoryUse() memoryUse {
	m := memoryUse{total: t.total}
	if limit := number(t.gauges.MemoryLimit); limit > 0 {
		m.total = min(m.total, limit)
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
	m.cached, m.shared = of("total_cache", "file"), of("total_shmem", "shmem")
	m.anonymous, m.slab = of("total_rss", "anon"), of("slab_reclaimable")
	m.active = of("total_active_anon", "active_anon") + of("total_active_file", "active_file")
	m.inactive = of("total_inactive_anon", "inactive_anon") + of("total_inactive_file", "inactive_file")
	m.free = m.total - min(m.total, number(t.gauges.Memory))
	m.available = min(m.total, m.free+m.cached-min(m.cached, m.shared)+m.slab)
	return m
}

// meminfo is /proc/meminfo of the limit, see proc_meminfo(5).
func (m memoryUse) meminfo() []byte {
	var out []byte
	for _, line := range []struct {
		name  string
		bytes uint64
	}{
		{"MemTotal:", m.total}, {"MemFree:", m.free}, {"MemAvailable:", m.available}, {"Buffers:", 0}, {"Cached:", m.cached}, {"SwapCached:", 0},
		{"Active:", m.active}, {"Inactive:", m.inactive},
		{"SwapTotal:", 0}, {"SwapFree:", 0}, {"AnonPages:", m.anonymous}, {"Shmem:", m.shared}, {"SReclaimable:", m.slab},
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
	fd   int
	text []byte
}

// write has the file hold text, which most of them do already.
func (w *factFile) write(text []byte) {
	if bytes.Equal(w.text, text) {
		return
	}
	if n, err := unix.Pwrite(w.fd, text, 0); err != nil || n < len(text) {
		return // the next time, or never; the commands go on
	}
	if len(w.text) > len(text) {
		_ = unix.Ftruncate(w.fd, int64(len(text)))
	}
	w.text = text
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
