// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroupfs

import (
	"slices"
	"strings"
)

// Mount is a mounted cgroup hierarchy.
type Mount struct {
	Path string
	V2   bool
	// Controllers are those of a v1 hierarchy that limit what we limit: cpu, memory, pids. Those
	// of v2 are in a file of its root.
	Controllers []string
}

// Mounts finds the hierarchies in the text of /proc/self/mountinfo. Of several
// mounts of one, that of its root is taken, else the first.
func Mounts(mountinfo string) []Mount {
	type found struct {
		Mount
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
		f := found{Mount: Mount{Path: unescape(l[4])}, whole: l[3] == "/"}
		switch r[0] {
		case "cgroup2":
			f.V2 = true
		case "cgroup":
			for o := range strings.SplitSeq(r[2], ",") {
				if o == "cpu" || o == "memory" || o == "pids" {
					f.Controllers = append(f.Controllers, o)
				}
			}
			if f.Controllers == nil {
				continue
			}
		default:
			continue
		}
		i := slices.IndexFunc(out, func(o found) bool {
			return o.V2 == f.V2 && slices.Equal(o.Controllers, f.Controllers)
		})
		switch {
		case i < 0:
			out = append(out, f)
		case f.whole && !out[i].whole:
			out[i] = f
		}
	}
	list := make([]Mount, len(out))
	for i, f := range out {
		list[i] = f.Mount
	}
	return list
}

// unescape undoes the kernel's octal escapes of blanks and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
