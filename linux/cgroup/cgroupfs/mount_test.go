// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroupfs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMountsAreFound(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []Mount
	}{
		{"none", "22 1 0:21 / /proc rw - proc proc rw\n", []Mount{}},
		{"pure v2", "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			[]Mount{{Path: "/sys/fs/cgroup", V2: true}}},
		{"hybrid, controllers together, others ignored", `32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`, []Mount{
			{Path: "/sys/fs/cgroup/cpu,cpuacct", Controllers: []string{"cpu"}},
			{Path: "/sys/fs/cgroup/memory", Controllers: []string{"memory"}},
			{Path: "/sys/fs/cgroup/pids", Controllers: []string{"pids"}},
			{Path: "/sys/fs/cgroup/unified", V2: true}}},
		{"the whole tree rather than a part of it", `31 23 0:28 /docker/x /c rw - cgroup2 cgroup2 rw
32 23 0:28 / /a\040b\134 rw - cgroup2 cgroup2 rw
33 23 0:28 / /later rw - cgroup2 cgroup2 rw
`, []Mount{{Path: `/a b\`, V2: true}}},
		{"broken lines", "\n31 23\n31 23 0:28 / /x rw - cgroup2\n - - -\n", []Mount{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(Mounts(tc.text), tc.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}
