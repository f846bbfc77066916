// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// NamespaceOf returns the namespace that a driver's directory was last used with. See [host.NamespaceOf].
func (*Kind) NamespaceOf(dir string) (string, error) { return host.NamespaceOf(dir) }

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

// Up lists the sandboxes whose process 1 runs, of the driver's directory and its namespace.
func (*Kind) Up(p runtime.Place) ([]sandbox.ID, error) {
	boot, err := host.BootID()
	if err != nil {
		return nil, err
	}
	w := &warden{boot: boot}
	w.files, err = os.OpenRoot(host.InstancesDir(p.Dir, p.Namespace))
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
		if id, isState := strings.CutSuffix(f.Name(), host.StateFile); isState && sandbox.ValidID(id) && w.up(sandbox.ID(id)) {
			ids = append(ids, sandbox.ID(id))
		}
	}
	return ids, nil
}

// up reports whether process 1 of a sandbox runs that somebody has.
func (w *warden) up(id sandbox.ID) bool {
	s, err := host.ReadState(w.files, string(id))
	if err != nil {
		return false
	}
	if _, err := w.files.Lstat(string(id) + aheadFile); err == nil {
		return false
	}
	pidfd, err := s.Open(w.boot)
	if pidfd != nil {
		_ = pidfd.Close()
	}
	return err == nil && pidfd != nil
}

// Identified reports whether the store of layers has the id of [Options].Store.
func (d *Driver) Identified() bool { return d.layers.Identified() }
