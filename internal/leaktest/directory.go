// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hiddenDepth is how deep file systems are looked into that only a server has
// mounted: enough to see each thing in them, not all that each contains.
const hiddenDepth = 3

// directories counts those below the directory, and those in btrfs file systems that the servers
// hold by descriptor and that have no path.
func directories(s Scope, _ []Process, out map[string]int) error {
	if s.Dir != "" {
		if err := walk(s.Dir, "", 64, out); err != nil {
			return err
		}
	}
	type place struct{ dev, ino uint64 }
	var here unix.Stat_t
	if s.Dir != "" {
		if err := unix.Stat(s.Dir, &here); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	seen := map[place]bool{}
	for _, pid := range s.Servers {
		for path, to := range links(pid) {
			var st unix.Stat_t
			var sf unix.Statfs_t
			if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Dev == here.Dev ||
				unix.Statfs(path, &sf) != nil || sf.Type != unix.BTRFS_SUPER_MAGIC {
				continue
			}
			p := place{st.Dev, st.Ino}
			if seen[p] {
				continue
			}
			seen[p] = true
			// The slash makes the kernel enter what the link stands for.
			if err := walk(path+"/", "btrfs:"+strconv.FormatUint(st.Ino, 10)+to, hiddenDepth, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk counts the directories below root; as is what they are called by, "" is
// root itself.
func walk(root, as string, depth int, out map[string]int) error {
	entries, err := os.ReadDir(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // it is gone
	case err != nil:
		return fmt.Errorf("read %s: %w", root, err)
	}
	if as == "" {
		as = strings.TrimSuffix(root, "/")
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		name := as + "/" + e.Name()
		out[name]++
		if depth > 1 {
			if err := walk(filepath.Join(root, e.Name()), name, depth-1, out); err != nil {
				return err
			}
		}
	}
	return nil
}
