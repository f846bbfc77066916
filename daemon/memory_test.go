// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func treeOf(text map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, s := range text {
		root[name] = &fstest.MapFile{Data: []byte(s)}
	}
	return root
}

const (
	mountV1 = "35 30 0:31 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
	mountV2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
)

func TestTheLeastLimitOfTheControlGroupsCounts(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"V1": {map[string]string{
			"proc/self/cgroup": "5:cpu:/\n4:memory:/a/b\n", "proc/self/mountinfo": mountV1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "167772160\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n",
		}, 160 << 20},
		"V2": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.max": "536870912\n",
		}, 512 << 20},
		"V2InAContainer": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/memory.max": "1048576\n",
		}, 1 << 20},
		"AMountOfItsOwnGroup": {map[string]string{
			"proc/self/cgroup": "4:memory:/docker/x\n", "proc/self/mountinfo": "35 30 0:31 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n",
		}, 1 << 20},
		"None": {map[string]string{
			"proc/self/cgroup": "4:memory:/\n0::/\n", "proc/self/mountinfo": mountV1 + mountV2,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		"NoFiles": {nil, 0},
	} {
		if got := groupLimit(treeOf(c.files)); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestTheCollectorFollowsTheLimitUnlessTheOperatorSetOne(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	root := treeOf(map[string]string{
		"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/memory.max": "1073741824\n",
	})
	debug.SetMemoryLimit(math.MaxInt64)
	var c AnswersConfig
	b := c.openMemory(root, func(string) string { return "5GiB" }, slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("beside GOMEMLIMIT: got %d", got)
	}
	if b.Total() != 256<<20 {
		t.Errorf("a quarter of 1 GiB: got %d", b.Total())
	}
	c.MemoryMB = 100
	b = c.openMemory(root, func(string) string { return "" }, slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got != 1<<30/10*9 {
		t.Errorf("without GOMEMLIMIT: got %d, want 90 %% of 1 GiB", got)
	}
	if b.Total() != 100<<20 {
		t.Errorf("as configured: got %d", b.Total())
	}
	if (&AnswersConfig{MemoryMB: 15}).check() == nil {
		t.Error("15 MB are enough")
	}
}
