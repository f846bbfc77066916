// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/runtime/native/cgroup"
	"sandpit.dev/sandbox"
)

// namespaceLength is of the names that [namespaceOf] makes.
const namespaceLength = 12

// namespaceOf is the namespace of a directory that no other was chosen for.
func namespaceOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:namespaceLength/2])
}

// NamespaceOf is the namespace that a driver's directory was used with by whoever had it
// last, as far as the directory says: the one by which its instances are found that are up.
func NamespaceOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	target, err := os.Readlink(filepath.Join(dir, "instances"))
	if err != nil {
		return namespaceOf(dir), nil // an earlier version, or nothing is up
	}
	rest, ours := strings.CutPrefix(filepath.Base(target), "sandpit-")
	if !ours || len(rest) < namespaceLength+1 || rest[namespaceLength] != '-' {
		return namespaceOf(dir), nil
	}
	// A copy of the directory has the link as well.
	owner, err := os.Readlink(target + ofSuffix)
	if err != nil {
		return namespaceOf(dir), nil
	}
	switch there, err := os.Stat(owner); {
	case errors.Is(err, fs.ErrNotExist): // it was moved
	case err != nil:
		return namespaceOf(dir), nil
	default:
		here, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		if !os.SameFile(here, there) {
			return namespaceOf(dir), nil
		}
	}
	return rest[:namespaceLength], nil
}

// Groups lists the sandboxes that have groups on the host in a namespace, which those that
// are up have.
func Groups(namespace string) ([]sandbox.ID, error) {
	groups, err := cgroup.Open(cgroup.Options{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	defer func() { _ = groups.Close() }()
	return (&warden{groups: groups}).ids()
}

// Identified reports whether the store of layers has the id of [Options].Store.
func (d *Driver) Identified() bool { return d.layers.Identified() }
