// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
)

// AnswersConfig bounds what answers hold in memory.
type AnswersConfig struct {
	// MemoryMB is what all answers and large bodies together may hold. 0: a quarter of what
	// the server may use, which is its control group's limit or the host's memory, and at
	// most 1 GiB.
	MemoryMB int `yaml:"memory_mb"`
}

const (
	minAnswers = 16 << 20
	maxAnswers = 1 << 30
)

func (c *AnswersConfig) check() error {
	if c.MemoryMB != 0 && (c.MemoryMB < minAnswers>>20 || c.MemoryMB > 1<<20) {
		return fault.InvalidField("answers.memory_mb", "%d is outside %d to %d (0: by the memory that there is)", c.MemoryMB, minAnswers>>20, 1<<20)
	}
	return nil
}

// openMemory returns the budget of answers, and keeps the collector of garbage below the
// control group's limit, unless the operator set GOMEMLIMIT. root is the root of the files.
func (c *AnswersConfig) openMemory(root fs.FS, getenv func(string) string, log *slog.Logger) *budget.Budget {
	limit := groupLimit(root)
	if limit > 0 && getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
	if limit == 0 {
		limit = hostMemory()
	}
	total := int64(c.MemoryMB) << 20
	if total == 0 {
		total = min(max(limit/4, minAnswers), maxAnswers)
	}
	log.Debug("memory", "limit", limit, "answers", total)
	return budget.New(budget.Options{Total: total})
}

func hostMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// groupLimit returns the least memory limit of the control group that the server is in, and of
// those above it; 0 if they have no limit.
func groupLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(part) != 3 {
			continue
		}
		file := "memory.max"
		switch {
		case part[0] == "0" && part[1] == "":
		case slices.Contains(strings.Split(part[1], ","), "memory"):
			file = "memory.limit_in_bytes"
		default:
			continue
		}
		point, top := memoryMount(mounts, part[1] != "")
		if point == "" {
			continue
		}
		// A container may see its own group as the root of the mount.
		dir, ok := strings.CutPrefix(part[2], top)
		if !ok {
			dir = ""
		}
		for dir = path.Join("/", dir); ; dir = path.Dir(dir) {
			text, err := fs.ReadFile(root, strings.TrimPrefix(path.Join(point, dir, file), "/"))
			if n, perr := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && perr == nil && n > 0 {
				least = min(least, n)
			}
			if dir == "/" {
				break
			}
		}
	}
	if least > math.MaxInt64/2 { // as v1 writes no limit
		return 0
	}
	return least
}

// memoryMount finds where the hierarchy of memory is mounted, and which group is its root there.
func memoryMount(mountinfo []byte, v1 bool) (point, top string) {
	for line := range strings.Lines(string(mountinfo)) {
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		if v1 && r[0] == "cgroup" && slices.Contains(strings.Split(r[2], ","), "memory") || !v1 && r[0] == "cgroup2" {
			return l[4], strings.TrimSuffix(l[3], "/")
		}
	}
	return "", ""
}
