// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// freezing times the kernel alone: how long the processes of a sandbox's cgroup take to
// stand still, and to go on, n times. It is the floor of a pause and a resume.
func freezing(ctx context.Context, pid int, id string, n int) (freeze, thaw *Figures, err error) {
	dir, err := unifiedGroup(pid, id)
	if err != nil {
		return nil, nil, err
	}
	var stand, run series
	for range n {
		for _, step := range []struct {
			write string
			until []byte
			times *series
		}{{"1", []byte("frozen 1"), &stand}, {"0", []byte("frozen 0"), &run}} {
			began := time.Now()
			if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte(step.write), 0); err != nil {
				return nil, nil, err
			}
			for {
				events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
				if err != nil {
					return nil, nil, err
				}
				if bytes.Contains(events, step.until) {
					break
				}
				if ctx.Err() != nil {
					return nil, nil, ctx.Err()
				}
			}
			step.times.add(time.Since(began), nil)
		}
	}
	return stand.figures(), run.figures(), nil
}

// unifiedGroup returns the directory of the cgroup2 group of a sandbox, by a process in it.
func unifiedGroup(pid int, id string) (string, error) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	var top string
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			top = f[1]
			break
		}
	}
	for line := range strings.Lines(string(groups)) {
		path, unified := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !unified || top == "" {
			continue
		}
		for part := path; part != "." && part != "/"; part = filepath.Dir(part) {
			if filepath.Base(part) == id {
				return filepath.Join(top, part), nil
			}
		}
	}
	return "", errors.New("the sandbox has no cgroup2 group that can be found")
}
