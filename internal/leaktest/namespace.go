// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"os"
	"strconv"
)

var namespaceKinds = []string{"mnt", "pid", "net", "ipc", "uts", "user", "cgroup", "time"}

// namespaces counts those that the scope's processes are in and the caller is
// not. Those that a server only holds are among its descriptors.
func namespaces(_ Scope, procs []Process, out map[string]int) error {
	host := map[string]bool{}
	for _, kind := range namespaceKinds {
		if ns, err := os.Readlink("/proc/self/ns/" + kind); err == nil { // else the kernel has no such kind
			host[ns] = true
		}
	}
	for _, p := range procs {
		for _, kind := range namespaceKinds {
			ns, err := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/ns/" + kind)
			if err == nil && !host[ns] { // else it has ended
				out[ns] = 1 // however many are in it
			}
		}
	}
	return nil
}
