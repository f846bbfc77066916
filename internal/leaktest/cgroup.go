// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"errors"
	"io/fs"
	"path/filepath"
)

const cgroupRoot = "/sys/fs/cgroup"

// cgroups counts the directories below the host's hierarchies whose path has
// one of the marks.
func cgroups(s Scope, _ []Process, out map[string]int) error {
	return filepath.WalkDir(cgroupRoot, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil // it is gone, or another user's
		case err != nil:
			return err
		case d.IsDir() && s.marked(path):
			out[path]++
		}
		return nil
	})
}
