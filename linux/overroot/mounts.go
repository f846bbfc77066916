// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package overroot

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mounts returns where something is mounted below the root but at a path, and not below another of these.
func mounts(but string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	all, err := parse(f)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(all, but) {
		return nil, errors.New("nothing is mounted at " + but)
	}
	return tops(all, but), nil
}

// parse returns the paths of a list of mounts, see proc_pid_mountinfo(5).
func parse(r io.Reader) (all []string, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 7 {
			return nil, errors.New("a line of the list of mounts makes no sense")
		}
		all = append(all, unescape(fields[4]))
	}
	return all, lines.Err()
}

// unescape returns a path as it is: spaces, tabs, newlines and backslashes are written as three octal digits.
func unescape(s string) string {
	var b strings.Builder
	for n := 0; n < len(s); n++ {
		if s[n] == '\\' && n+4 <= len(s) {
			if c, err := strconv.ParseUint(s[n+1:n+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				n += 3
				continue
			}
		}
		b.WriteByte(s[n])
	}
	return b.String()
}

// tops returns those of the paths that are not below another one, without the root, and one with all that is below it.
func tops(all []string, but string) (out []string) {
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	below := func(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
	for _, path := range all {
		if path == "/" || below(path, but) || slices.ContainsFunc(out, func(dir string) bool { return below(path, dir) }) {
			continue
		}
		out = append(out, path)
	}
	return out
}
