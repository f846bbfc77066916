// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/runtime"
)

// told is what programs inside are told of the machine: it is the sandbox's limits.
func told(t *testing.T, s *suite) {
	s.need(t, runtime.Isolation)
	s.need(t, runtime.LimitCPU)
	s.need(t, runtime.LimitMemory)
	s.need(t, runtime.Resize)
	spec := s.spec()
	spec.Limits.CPU, spec.Limits.MemoryMB = 1, 512
	b := s.create(t, spec)
	memory := func(field string) int {
		t.Helper()
		n, err := strconv.Atoi(b.ok("sed -n 's/^" + field + ": *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo"))
		if err != nil {
			t.Fatalf("%s in /proc/meminfo: %v", field, err)
		}
		return n
	}
	t.Run("Limits", func(t *testing.T) {
		for _, row := range []struct{ shell, want string }{
			{"free -m | awk '/^Mem:/ {print $2}'", "512"},
			{"python3 -c 'import os; print(os.cpu_count())'", "1"},
			{"getconf _NPROCESSORS_ONLN", "1"},
			{"cat /sys/devices/system/cpu/online /sys/devices/system/cpu/possible /sys/devices/system/cpu/present", "0\n0\n0"},
			{"grep -c '^cpu[0-9]' /proc/stat", "1"},
			{"awk '/^Swap(Total|Free)/ {print $2}' /proc/meminfo", "0\n0"},
		} {
			if got := b.ok(row.shell); got != row.want {
				t.Errorf("%s: %q, want %q", row.shell, got, row.want)
			}
		}
		b.ok("top -bn1 >/dev/null && uptime && ps -eo etime,lstart && vmstat >/dev/null")
	})
	t.Run("Use", func(t *testing.T) {
		before := memory("MemAvailable")
		if before > 512<<10 || before < 400<<10 {
			t.Errorf("%d kB of 512 MiB are available", before)
		}
		b.begin(holds("150"), "begun\n")
		b.ok("for i in $(seq 100); do [ $(sed -n 's/^MemAvailable: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo) -lt " + strconv.Itoa(before-100<<10) + " ] && exit 0; sleep 0.1; done; exit 1")
		// Neither the one minute's load nor the ticks are the host's, which is up for longer.
		b.ok("python3 -c 'import time\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass'")
		b.ok("for i in $(seq 100); do read load rest </proc/loadavg; read cpu user nice system rest </proc/stat; [ $load != 0.00 ] && [ $((user + system)) -gt 100 ] && exit 0; sleep 0.1; done; cat /proc/loadavg /proc/stat; exit 1")
	})
	t.Run("AreWrittenByNobodyInside", func(t *testing.T) {
		for _, path := range []string{"/proc/meminfo", "/proc/stat", "/proc/loadavg", "/sys/devices/system/cpu/online", "/sys/fs/proc/meminfo"} {
			if o := b.asRoot("echo 1 > " + path); !strings.Contains(o.Stderr, "Read-only file system") {
				t.Errorf("root writes %s: %q", path, o.Stderr)
			}
			if o := b.asRoot("chmod 666 " + path); !strings.Contains(o.Stderr, "Read-only file system") {
				t.Errorf("root opens %s to all: %q", path, o.Stderr)
			}
		}
	})
	t.Run("FollowTheLimits", func(t *testing.T) {
		l := spec.Limits
		l.MemoryMB = 1024
		if err := b.resize(l); err != nil {
			t.Fatal(err)
		}
		b.ok("for i in $(seq 100); do grep -q '^MemTotal: *1048576 kB$' /proc/meminfo && exit 0; sleep 0.1; done; exit 1")
	})
}
