// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// disk is what the files of a sandbox may be: by path the sums that its content may have, of
// which "" means a missing file. What was answered leaves one; a write that was not answered
// leaves two.
type disk map[string][]string

func (d disk) clone() disk {
	c := make(disk, len(d))
	for path, sums := range d {
		c[path] = slices.Clone(sums)
	}
	return c
}

// of returns what the file at path may be.
func (d disk) of(path string) []string {
	if sums, ok := d[path]; ok {
		return sums
	}
	return []string{""}
}

// wrote is a write that was answered.
func (d disk) wrote(path, sum string) { d[path] = []string{sum} }

// mayHaveWritten is one that was not.
func (d disk) mayHaveWritten(path, sum string) { d[path] = append(slices.Clone(d.of(path)), sum) }

// fits reports whether d may be what is there.
func (d disk) fits(there map[string]string) bool {
	for path, sum := range there {
		if !may(d.of(path), sum) {
			return false
		}
	}
	for path, sums := range d {
		if !may(sums, there[path]) {
			return false
		}
	}
	return true
}

// anything is the sum of a file that was written and is not known to have reached the
// disk, which may have been full by then.
const anything = "?"

func may(sums []string, sum string) bool {
	return slices.Contains(sums, sum) || slices.Contains(sums, anything)
}

// worlds are the disks that a sandbox may have: one, or more since a verb that
// exchanges the disk was not answered. Such a verb happens whole or not at all.
type worlds []disk

func (w worlds) clone() worlds {
	c := make(worlds, len(w))
	for i, d := range w {
		c[i] = d.clone()
	}
	return c
}

func (w worlds) each(fn func(disk)) {
	for _, d := range w {
		fn(d)
	}
}

// narrow returns those that may be what is there.
func (w worlds) narrow(there map[string]string) (worlds, error) {
	var fit worlds
	for _, d := range w {
		if d.fits(there) {
			fit = append(fit, d)
		}
	}
	if len(fit) > 0 {
		return fit, nil
	}
	var want []string
	for _, d := range w {
		want = append(want, fmt.Sprint(map[string][]string(d)))
	}
	return nil, fmt.Errorf("the files are\n  %v\nwhich is none of\n  %s", there, strings.Join(want, "\n  "))
}

func sumOf(content string) string {
	sum := sha1.Sum([]byte(content))
	return hex.EncodeToString(sum[:6])
}

// The files of the campaign: in the workspace, written through the file API, and
// outside of it, written by commands. Each has one of a few names, so that the
// same file is written again and again.
const namesEach = 4

func workspaceFile(n int) string { return fmt.Sprintf("w%d", n) }
func rootFile(n int) string      { return fmt.Sprintf("/var/tmp/r%d", n) }

// logFile is what a process inside adds a line to, all the time that it lives: the
// numbers from 1 on. A copy of a disk in which one is missing was torn.
const (
	logFile   = "log"
	logWriter = `n=$(cat log 2>/dev/null | wc -l); while :; do n=$((n+1)); echo $n >> log; sleep 0.02; done`
)

const lookInside = `sha1sum w? /var/tmp/r? 2>/dev/null; echo; if [ -e log ]; then awk '$1 != NR { bad = NR } END { print NR, bad + 0 }' log; else echo 0 0; fi`

// lookAt reads all files of a sandbox that runs: the sums by path, and how many
// lines its log has.
func lookAt(ctx context.Context, c *client.Client, ref string) (there map[string]string, lines int, err error) {
	r, err := c.Exec(ctx, ref, v1.Exec{Command: new(lookInside)})
	if err != nil {
		return nil, 0, err
	}
	if r.ExitCode == nil || *r.ExitCode != 0 {
		return nil, 0, fmt.Errorf("%s: its files cannot be read: %s, cause %q, %s", ref, code(r.ExitCode), r.Cause, r.Stderr)
	}
	files, log, _ := strings.Cut("\n"+r.Stdout, "\n\n")
	there = map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(files)) {
		sum, path, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || len(sum) < 12 {
			return nil, 0, fmt.Errorf("%s: its files cannot be read: %q", ref, r.Stdout)
		}
		there[path] = sum[:12]
	}
	count, bad, _ := strings.Cut(strings.TrimSpace(log), " ")
	lines, err = strconv.Atoi(count)
	if err != nil || bad != "0" {
		return nil, 0, fmt.Errorf("%s: its log has %s lines, and line %s is not its number: a torn copy", ref, count, bad)
	}
	return there, lines, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
