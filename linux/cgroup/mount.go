// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"slices"
	"strings"
)

// mount is a mounted cgroup hierarchy.
type mount struct {
	path string
	// controllers of a v1 hierarchy; nil for v2, which says them in a file.
	controllers []string
	v2          bool
}

// mounts finds the hierarchies in the text of /proc/self/mountinfo. Of several
// mounts of one, that of its root is taken, else the first.
func mounts(mountinfo string) []mount {
	type found struct {
		mount
		whole bool
	}
	var out []found
	for line := range strings.Lines(mountinfo) {
		// 36 35 98:0 /root /point options optional… - type source superoptions
		left, right, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		f := found{mount: mount{path: unescape(l[4])}, whole: l[3] == "/"}
		switch r[0] {
		case "cgroup2":
			f.v2 = true
		case "cgroup":
			for o := range strings.SplitSeq(r[2], ",") {
				if o == "cpu" || o == "memory" || o == "pids" {
					f.controllers = append(f.controllers, o)
				}
			}
			if f.controllers == nil {
				continue
			}
		default:
			continue
		}
		i := slices.IndexFunc(out, func(o found) bool {
			return o.v2 == f.v2 && slices.Equal(o.controllers, f.controllers)
		})
		switch {
		case i < 0:
			out = append(out, f)
		case f.whole && !out[i].whole:
			out[i] = f
		}
	}
	list := make([]mount, len(out))
	for i, f := range out {
		list[i] = f.mount
	}
	return list
}

// unescape undoes the kernel's octal escapes of blanks and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
