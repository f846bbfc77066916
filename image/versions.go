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
	"strings"
	"syscall"
)

//go:embed versions.sh
var versionsScript string

// pythonTools are the keys that versions.sh must print: if a tool is missing or does not start,
// the build fails.
var pythonTools = []string{
	"debian", "bash", "python", "pip", "numpy", "matplotlib", "ipython", "node", "npm", "git", "curl", "jq", "ripgrep",
}

var versionLine = regexp.MustCompile(`^([a-z]+)=v?([0-9][0-9A-Za-z.+~:_-]{0,63})$`)

// pythonVersions runs every tool of the finished root and reads its version,
// and runs a line of TypeScript, since that is what Node is there for.
func pythonVersions(ctx context.Context, w *work) (map[string]string, error) {
	out, err := w.chroot(ctx, inside{}, "bash", "-c", versionsScript)
	if err != nil {
		return nil, err
	}
	return parseVersions(out, pythonTools)
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
