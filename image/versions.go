// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

//go:embed versions.sh
var versionsScript string

// These are keys that versions.sh must print of an image: if a tool is missing or does not start,
// the build fails. pythonTools are all that it knows.
var (
	baseTools   = []string{"debian", "bash", "git", "curl", "wget", "rsync", "ssh", "jq", "ripgrep"}
	pythonTools = append([]string{
		"python", "pip", "numpy", "pandas", "matplotlib", "ipython", "pytest", "requests", "node", "npm", "gcc", "gxx", "make",
	}, baseTools...)
)

var versionLine = regexp.MustCompile(`^([a-z]+)=v?([0-9][0-9A-Za-z.+~:_-]{0,63})$`)

var absentLine = regexp.MustCompile(`^absent=([a-z][a-z0-9-]{0,31})$`)

// inspect returns what runs every tool of the finished root and reads its version,
// looks for what many expect, and runs a line of TypeScript, since that is what
// Node is there for. A tool of want that is not there is an error.
func inspect(want []string) func(context.Context, *work) (contents, error) {
	return func(ctx context.Context, w *work) (contents, error) {
		out, err := w.chroot(ctx, inside{}, "bash", "-c", versionsScript)
		if err != nil {
			return contents{}, err
		}
		versions, err := parseVersions(out, want)
		return contents{versions, parseAbsent(out)}, err
	}
}

func parseAbsent(out string) []string {
	var absent []string
	for line := range strings.Lines(out) {
		if m := absentLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			absent = append(absent, m[1])
		}
	}
	slices.Sort(absent)
	return slices.Compact(absent)
}

func parseVersions(out string, want []string) (map[string]string, error) {
	versions := make(map[string]string)
	for line := range strings.Lines(out) {
		if m := versionLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			versions[m[1]] = m[2]
		}
	}
	for _, tool := range want {
		if versions[tool] == "" {
			return nil, fmt.Errorf("%s gave no version inside the image", tool)
		}
	}
	return versions, nil
}

// measure returns the bytes that a tree takes on disk and the number of its
// entries. A file with several names counts its bytes once.
func measure(dir string) (size, files int64, err error) {
	type inode struct{ dev, ino uint64 }
	seen := make(map[inode]bool)
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files++
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: %w", dir, os.ErrInvalid)
		}
		if st.Nlink > 1 && !d.IsDir() {
			id := inode{uint64(st.Dev), st.Ino}
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		size += st.Blocks * 512
		return nil
	})
	return size, files, err
}
