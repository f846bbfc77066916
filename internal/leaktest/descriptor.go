// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// links returns what a process has open.
func links(pid int) map[string]string {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // it has ended
	}
	out := make(map[string]string, len(entries))
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if to, err := os.Readlink(path); err == nil {
			out[path] = to
		}
	}
	return out
}

// serial is what differs between two descriptors of one sort.
var serial = regexp.MustCompile(`\[[0-9]+\]`)

// descriptors counts those of the servers by what they are open on.
func descriptors(s Scope, _ []Process, out map[string]int) error {
	for _, pid := range s.Servers {
		for _, to := range links(pid) {
			out[serial.ReplaceAllString(to, "[]")]++
		}
	}
	return nil
}

// sockets counts Unix sockets that have a name: below the directory, with a
// mark in it, or open in a process of the scope.
func sockets(s Scope, procs []Process, out map[string]int) error {
	held := map[string]bool{}
	for _, p := range procs {
		for _, to := range links(p.PID) {
			held[to] = true
		}
	}
	for _, pid := range s.Servers {
		for _, to := range links(pid) {
			held[to] = true
		}
	}
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return err
	}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 8 {
			continue // it has no name
		}
		path := strings.Join(f[7:], " ")
		if !s.within(path) && !s.marked(path) && !held["socket:["+f[6]+"]"] {
			continue
		}
		// One that was bound in a directory that was open then has its descriptor for a name: such are counted together.
		if at, ok := strings.CutPrefix(path, "/proc/self/fd/"); ok {
			_, rest, _ := strings.Cut(at, "/")
			out["/proc/self/fd/N/"+rest]++
			continue
		}
		out[path+" "+f[6]]++
	}
	return sc.Err()
}
