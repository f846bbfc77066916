// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// namespaceLength is that of the names that [PathNamespace] makes.
const namespaceLength = 12

// PathNamespace returns the namespace of a directory for which no other was chosen.
func PathNamespace(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:namespaceLength/2])
}

// NamespaceOf returns the namespace that a driver's directory was last used with, as far as
// the directory says: the one by which its instances are found that are up.
func NamespaceOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	target, err := os.Readlink(linkPath(dir))
	if err != nil {
		return PathNamespace(dir), nil // an earlier version, or nothing is up
	}
	rest, ours := strings.CutPrefix(filepath.Base(target), memoryPrefix)
	if !ours || len(rest) < namespaceLength+1 || rest[namespaceLength] != '-' {
		return PathNamespace(dir), nil
	}
	// A copy of the directory has the link as well.
	owner, err := os.Readlink(target + ofSuffix)
	if err != nil {
		return PathNamespace(dir), nil
	}
	switch there, err := os.Stat(owner); {
	case errors.Is(err, fs.ErrNotExist): // it was moved
	case err != nil:
		return PathNamespace(dir), nil
	default:
		here, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		if !os.SameFile(here, there) {
			return PathNamespace(dir), nil
		}
	}
	return rest[:namespaceLength], nil
}
