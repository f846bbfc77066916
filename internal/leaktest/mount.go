// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mounts counts, in every mount namespace of the host, the mounts that name the scope's
// directory, and overlay and btrfs mounts in the namespace of the caller, which should have none
// but for those of other tests below the directory of temporary files. In the namespaces of the
// scope's own processes, it counts all.
func mounts(s Scope, procs []Process, out map[string]int) error {
	self, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	links, err := filepath.Glob("/proc/[0-9]*/ns/mnt")
	if err != nil {
		return err
	}
	ours := map[int]bool{}
	for _, p := range procs {
		ours[p.PID] = true
	}
	// A namespace is the scope's when one of its processes is in it and no
	// server is: the latter share the host's.
	in := map[string][]int{}
	for _, link := range links {
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			continue
		}
		ns, err := os.Readlink(link)
		if err != nil {
			continue // it has ended
		}
		in[ns] = append(in[ns], pid)
	}
	for ns, pids := range in {
		own := ns != self && slices.ContainsFunc(pids, func(pid int) bool { return ours[pid] })
		lines := mountinfo(pids)
		for _, line := range lines {
			f := strings.Fields(line)
			if len(f) < 7 {
				continue
			}
			kind := ""
			if i := slices.Index(f, "-"); i > 0 && i+1 < len(f) {
				kind = f[i+1]
			}
			foreign := ns == self && (kind == "overlay" || kind == "btrfs") && !strings.HasPrefix(f[4], os.TempDir()+"/")
			if own || foreign || s.Dir != "" && strings.Contains(line, s.Dir) {
				out[ns+" "+f[0]+" "+f[4]+" "+kind]++
			}
		}
	}
	return nil
}

// mountinfo reads the mounts of a namespace through the first of its processes
// that still lives.
func mountinfo(pids []int) []string {
	for _, pid := range pids {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/mountinfo")
		if err == nil && len(b) > 0 {
			return strings.Split(strings.TrimSpace(string(b)), "\n")
		}
	}
	return nil
}
