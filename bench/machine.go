// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is what the figures were taken on.
type Machine struct {
	Cores      int     `json:"cores"`
	CPU        string  `json:"cpu"`
	Kernel     string  `json:"kernel"`
	MemoryMB   int64   `json:"memory_mb"`
	DataFS     string  `json:"data_file_system"`
	LoadBefore float64 `json:"load_before"` // runnable tasks, mean of the last minute
	LoadAfter  float64 `json:"load_after"`  // with the benchmark's own
	// Others is how many cores processes kept busy that the benchmark did not start, the
	// mean of the whole run; where they cannot be seen, how many were busy that the benchmark
	// does not know to be its own, which is more. Stolen is how many the hypervisor kept to itself.
	Others float64 `json:"others_cores"`
	Stolen float64 `json:"stolen_cores"`
	// CPUID is how long one such instruction takes, in microseconds; zero: not known. See
	// cpuidCost.
	CPUID float64 `json:"cpuid_us,omitempty"`
}

// quiet is how much of the machine others may use for figures to mean something.
const quiet = 0.05

// Busy reports whether others were in the way.
func (m Machine) Busy() bool { return m.Others+m.Stolen > quiet*float64(m.Cores) }

func describe(dir string) Machine {
	m := Machine{Cores: runtime.NumCPU(), CPU: cpuName(), DataFS: fileSystem(dir), LoadBefore: load(), CPUID: cpuidCost()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil {
		m.MemoryMB = int64(si.Totalram) * int64(si.Unit) >> 20
	}
	return m
}

func load() float64 {
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) != nil {
		return -1
	}
	return float64(int(float64(si.Loads[0])/65536*100)) / 100
}

func cpuName() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // without it there is no name
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

func fileSystem(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "unknown"
	}
	switch st.Type {
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	}
	return "another"
}

// usage is how much CPU time went where since boot.
type usage struct {
	at          time.Time
	all, stolen time.Duration // of the machine
	own         time.Duration // of this process and of what it started and waited for
	others      spenders      // nil: they cannot be seen
	err         error
}

func readUsage() usage {
	u := usage{at: time.Now()}
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if err := unix.Getrusage(who, &r); err != nil {
			u.err = err
			return u
		}
		u.own += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	u.others, _ = lookAround()
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		u.err = err
		return u
	}
	line, _, _ := strings.Cut(string(b), "\n")
	// cpu user nice system idle iowait irq softirq steal, in hundredths of a second
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			continue // the line's name
		}
		d := time.Duration(n) * 10 * time.Millisecond
		switch i {
		case 1, 2, 3, 6, 7:
			u.all += d
		case 8:
			u.stolen += d
		}
	}
	return u
}

// since fills in what others did between two readings, of which the second is
// from after the end of all that the benchmark started.
func (m *Machine) since(before, after usage) {
	wall := after.at.Sub(before.at)
	if before.err != nil || after.err != nil || wall <= 0 {
		return
	}
	cores := func(d time.Duration) float64 { return math.Round(max(0, float64(d)/float64(wall))*100) / 100 }
	m.Others = cores((after.all - before.all) - (after.own - before.own))
	if before.others != nil && after.others != nil {
		m.Others = cores(after.others.since(before.others))
	}
	m.Stolen = cores(after.stolen - before.stolen)
}
