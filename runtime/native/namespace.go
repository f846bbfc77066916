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

	"sandpit.dev/linux/cgroup"
	"sandpit.dev/runtime"
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
func (*Kind) NamespaceOf(dir string) (string, error) {
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
func (*Kind) Groups(namespace string) ([]sandbox.ID, error) {
	groups, err := cgroup.Open(cgroup.Options{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	defer func() { _ = groups.Close() }()
	return (&warden{groups: groups}).ids()
}

// Up lists the sandboxes whose process 1 runs, of the driver's directory and its namespace. What a server had started ahead, and given to nobody, is not among them.
func (*Kind) Up(p runtime.Place) ([]sandbox.ID, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	w := &warden{boot: boot}
	w.files, err = os.OpenRoot(instancesDir(p.Dir, p.Namespace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.files.Close() }()
	files, err := fs.ReadDir(w.files.FS(), ".")
	if err != nil {
		return nil, err
	}
	var ids []sandbox.ID
	for _, f := range files {
		if id, isState := strings.CutSuffix(f.Name(), stateFile); isState && sandbox.ValidID(id) && w.up(sandbox.ID(id)) {
			ids = append(ids, sandbox.ID(id))
		}
	}
	return ids, nil
}

// up reports whether process 1 of a sandbox runs that somebody has.
func (w *warden) up(id sandbox.ID) bool {
	s, err := readState(w.files, id)
	if err != nil {
		return false
	}
	if _, err := w.files.Lstat(string(id) + aheadFile); err == nil {
		return false
	}
	pidfd, err := s.alive(w.boot)
	if pidfd != nil {
		_ = pidfd.Close()
	}
	return err == nil && pidfd != nil
}

// Identified reports whether the store of layers has the id of [Options].Store.
func (d *Driver) Identified() bool { return d.layers.Identified() }
