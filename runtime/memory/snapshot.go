// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var (
	_ runtime.Snapshotter = (*Driver)(nil)
	_ runtime.Restorer    = (*instance)(nil)
	_ runtime.Forker      = (*Driver)(nil)
)

// Snapshot copies the disk while the processes are stopped.
func (d *Driver) Snapshot(ctx context.Context, of, id sandbox.ID) (_ runtime.Snapshot, err error) {
	m, err := d.host.find(of)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	m.verb.Lock()
	defer m.verb.Unlock()
	r, err := m.running()
	switch {
	case err == nil && r.paused == nil:
		if err := m.pauseLocked(ctx); err != nil {
			return runtime.Snapshot{}, err
		}
		defer func() { err = errors.Join(err, m.resumeLocked(ctx)) }()
	case err != nil && !fault.Is(err, fault.State):
		return runtime.Snapshot{}, err
	}
	return d.host.keep(id, func(dir string) ([]entry, error) {
		all, err := scan(m.disk(), m.hidden())
		if err != nil {
			return nil, err
		}
		return all, copyTree(all, dir)
	})
}

// Fork does one after the other what [runtime.Forker] saves time on.
func (d *Driver) Fork(ctx context.Context, of sandbox.ID, spec runtime.Spec, copied func()) (runtime.Instance, error) {
	spec.From = sandbox.NewID()
	_, err := d.Snapshot(ctx, of, spec.From)
	copied()
	if err != nil {
		return nil, err
	}
	inst, err := d.Create(ctx, spec)
	if rmErr := d.RemoveSnapshot(context.WithoutCancel(ctx), spec.From); err == nil && rmErr != nil {
		return nil, errors.Join(rmErr, inst.Remove(context.WithoutCancel(ctx)))
	}
	return inst, err
}

// Rollback makes the other disk beside the one that is there, and exchanges them.
func (d *Driver) Rollback(ctx context.Context, of, from sandbox.ID, l sandbox.Limits) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m, err := d.host.find(of)
	if err != nil {
		return err
	}
	m.verb.Lock()
	defer m.verb.Unlock()
	switch _, err := m.running(); {
	case err == nil:
		return fault.New(fault.State, "the instance %s is up", of).WithRemedy("stop it first")
	case !fault.Is(err, fault.State):
		return err
	}
	return m.exchange(from, l)
}

// Restore does one after the other what [runtime.Restorer] saves time on.
func (i *instance) Restore(ctx context.Context, spec runtime.Spec, from sandbox.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := i.m
	m.verb.Lock()
	defer m.verb.Unlock()
	if _, err := m.running(); err != nil {
		return err
	}
	if from != "" { // before anything is done
		m.host.snapshots.RLock()
		_, err := m.host.snapshot(from)
		m.host.snapshots.RUnlock()
		if err != nil {
			return err
		}
	}
	if err := m.stopLocked(stoppedExit()); err != nil {
		return err
	}
	if err := m.exchange(from, spec.Limits); err != nil {
		return err
	}
	return m.startLocked(spec)
}

// exchange returns the machine, which is down, the disk of a snapshot or of the image.
func (m *machine) exchange(from sandbox.ID, l sandbox.Limits) error {
	other := filepath.Join(m.dir, "disk.new")
	if err := os.RemoveAll(other); err != nil { // a crash may have left one
		return err
	}
	err := m.host.newDisk(other, from)
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, m.disk(), unix.RENAME_EXCHANGE)
	}
	if err == nil {
		m.mu.Lock()
		m.limits = l
		m.mu.Unlock()
	}
	return errors.Join(err, os.RemoveAll(other))
}

// Snapshots reads the host's directory.
func (d *Driver) Snapshots(ctx context.Context) ([]sandbox.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return d.host.ids(snapshotsDir)
}

// RemoveSnapshot deletes one.
func (d *Driver) RemoveSnapshot(ctx context.Context, id sandbox.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !sandbox.ValidID(string(id)) {
		return fault.InvalidField("id", "%q is not a valid snapshot id", sandbox.Clip(string(id), 40))
	}
	h := d.host
	h.snapshots.Lock()
	defer h.snapshots.Unlock()
	return h.discard(snapshotsDir, id)
}

// Diff compares the trees at two points, file by file.
func (d *Driver) Diff(ctx context.Context, _ runtime.Image, from, to runtime.Point, limit int) (sandbox.Changes, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Changes{}, err
	}
	d.host.snapshots.RLock()
	defer d.host.snapshots.RUnlock()
	before, err := d.host.at(from)
	if err != nil {
		return sandbox.Changes{}, err
	}
	after, err := d.host.at(to)
	if err != nil {
		return sandbox.Changes{}, err
	}
	old := make(map[string]*entry, len(before))
	for i := range before {
		old[before[i].name] = &before[i]
	}
	var all []sandbox.FileChange
	add := func(e *entry, action string) {
		c := sandbox.FileChange{Path: "/" + e.name, Action: action}
		if !utf8.ValidString(c.Path) {
			c.Path, c.Escaped = escape(c.Path), true
		}
		if e.kind() == unix.S_IFREG && action != "deleted" {
			c.Size = e.stat.Size
		}
		all = append(all, c)
	}
	for i := range after {
		e := &after[i]
		was := old[e.name]
		delete(old, e.name)
		if was == nil {
			add(e, "created")
			continue
		}
		switch alike, err := same(was, e); {
		case err != nil:
			return sandbox.Changes{}, err
		case !alike:
			add(e, "modified")
		}
	}
	for _, e := range old {
		add(e, "deleted")
	}
	slices.SortFunc(all, func(a, b sandbox.FileChange) int { return cmp.Compare(a.Path, b.Path) })
	return sandbox.Changes{Files: all[:min(limit, len(all))], Total: len(all), Complete: true}, nil
}

// escape writes a name that is no text, as [sandbox.FileEvent] says.
func escape(name string) string {
	var b strings.Builder
	for len(name) > 0 {
		switch r, n := utf8.DecodeRuneInString(name); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, name[0])
			name = name[1:]
		default:
			b.WriteString(strings.ReplaceAll(name[:n], `\`, `\\`))
			name = name[n:]
		}
	}
	return b.String()
}

// at returns the tree at a point; snapshots is held.
func (h *Host) at(p runtime.Point) ([]entry, error) {
	switch {
	case p.Snapshot != "":
		return h.snapshot(p.Snapshot)
	case p.Instance != "":
		m, err := h.find(p.Instance)
		if err != nil {
			return nil, err
		}
		m.verb.Lock()
		defer m.verb.Unlock()
		return scan(m.disk(), m.hidden())
	}
	return image(), nil
}

// snapshot reads the tree of one; snapshots is held.
func (h *Host) snapshot(id sandbox.ID) ([]entry, error) {
	if !sandbox.ValidID(string(id)) {
		return nil, fault.InvalidField("id", "%q is not a valid snapshot id", sandbox.Clip(string(id), 40))
	}
	all, err := scan(filepath.Join(h.dir, snapshotsDir, string(id)), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no snapshot %s on this host", id)
	}
	return all, err
}

// newDisk makes the directory dir: a copy of the snapshot from, or of the image.
func (h *Host) newDisk(dir string, from sandbox.ID) error {
	if from == "" {
		return copyTree(image(), dir)
	}
	h.snapshots.RLock()
	defer h.snapshots.RUnlock()
	all, err := h.snapshot(from)
	if err != nil {
		return err
	}
	return copyTree(all, dir)
}

// keep makes the snapshot id, all or nothing: fill makes the directory that it is
// told, and says what is in it.
func (h *Host) keep(id sandbox.ID, fill func(dir string) ([]entry, error)) (runtime.Snapshot, error) {
	if !sandbox.ValidID(string(id)) {
		return runtime.Snapshot{}, fault.InvalidField("id", "%q is not a valid snapshot id", sandbox.Clip(string(id), 40))
	}
	parent := filepath.Join(h.dir, snapshotsDir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return runtime.Snapshot{}, err
	}
	temp, err := os.MkdirTemp(parent, tempPrefix)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	dir := filepath.Join(temp, "disk")
	all, err := fill(dir)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	h.snapshots.Lock()
	defer h.snapshots.Unlock()
	err = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, filepath.Join(parent, string(id)), unix.RENAME_NOREPLACE)
	if errors.Is(err, fs.ErrExist) {
		return runtime.Snapshot{}, fault.New(fault.Exists, "there is a snapshot %s already", id)
	}
	return runtime.Snapshot{SizeBytes: size(all)}, err
}

// discard deletes a snapshot or volume; one that is not there is fine.
func (h *Host) discard(of string, id sandbox.ID) error {
	parent := filepath.Join(h.dir, of)
	temp, err := os.MkdirTemp(parent, tempPrefix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(parent, string(id)), filepath.Join(temp, string(id))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(temp)
}
