// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sweepTimeout is how long the kernel gets to end what was killed.
const sweepTimeout = 10 * time.Second

// askEvery is how often it is asked whether they ended.
const askEvery = 5 * time.Millisecond

// SweepGroup kills what still runs in the cgroups below name, in every hierarchy,
// and removes them. Peers make theirs there: the name is nobody else's.
func SweepGroup(name string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(b)) {
		mount, kind, _ := strings.Cut(line, " - ")
		f := strings.Fields(mount)
		if !strings.HasPrefix(kind, "cgroup") || len(f) < 5 {
			continue
		}
		errs = append(errs, sweepTree(filepath.Join(f[4], name)))
	}
	return errors.Join(errs...)
}

func sweepTree(top string) error {
	limit := time.Now().Add(sweepTimeout)
	for {
		err := tryTree(top)
		if err == nil || time.Now().After(limit) {
			return err
		}
		time.Sleep(askEvery)
	}
}

// tryTree removes the tree as far as it is empty, and kills what is in it.
func tryTree(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // it may be gone
		for _, f := range strings.Fields(string(procs)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a cgroup: %w", err)
		}
	}
	return nil
}
