// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Inspect looks for what is wrong with the driver's part of a data directory, and mends
// it if it is to. Sandboxes that are up are not touched, nor is any disk; what it
// frees is what their next start would: groups with processes that no server could
// find again, sockets and states of processes that are gone, and what [layer.Inspect]
// finds. It looks only at the directory and at what has the namespace. The caller sees to it
// that no server has it open. undue says why a sandbox that is up should not be, "" where
// it may: it is one of those that are not as the records say.
func (*Kind) Inspect(ctx context.Context, p runtime.Place, undue func(sandbox.ID) string, mend bool) ([]runtime.Finding, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	found, err := inspectInstances(ctx, dir, p.Namespace, undue, mend)
	if err != nil {
		return found, err
	}
	store, err := layer.Inspect(ctx, layersDir(dir), mend)
	for _, f := range store {
		found = append(found, runtime.Finding{Name: "store", What: f.What, Done: f.Done, Err: f.Err})
	}
	return found, err
}

func inspectInstances(ctx context.Context, dir, namespace string, undue func(sandbox.ID) string, mend bool) ([]runtime.Finding, error) {
	boot, err := host.BootID()
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "the host's boot id cannot be read").WithRemedy("mount /proc")
	}
	groups, err := cgroup.Open(cgroup.Options{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	defer func() { _ = groups.Close() }()
	w := &warden{boot: boot, groups: groups}
	w.files, err = os.OpenRoot(filepath.Join(dir, "instances"))
	if err == nil {
		defer func() { _ = w.files.Close() }()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "the states of sandboxes cannot be read")
	}
	ids, err := w.ids()
	if err != nil {
		return nil, err
	}
	var found []runtime.Finding
	for _, id := range ids {
		what, err := w.wrong(id)
		if err == nil && what == "" && w.up(id) {
			what = undue(id)
		}
		if err == nil && what == "" {
			continue
		}
		f := runtime.Finding{Name: "sandbox " + string(id), What: what, Err: err}
		if err == nil && mend {
			if f.Err = w.free(ctx, id); f.Err == nil {
				f.Done = "its processes were ended, and its groups and files freed; its disk is as it was"
			}
		}
		found = append(found, f)
	}
	return found, nil
}

// warden looks after what instances leave on the host, without a driver.
type warden struct {
	boot   string
	groups *cgroup.Driver
	files  *os.Root // nil: there are none
}

// ids lists all that has a group, a socket or a state; each once.
func (w *warden) ids() ([]sandbox.ID, error) {
	names, err := w.groups.List()
	if err != nil {
		return nil, err
	}
	if w.files != nil {
		files, err := fs.ReadDir(w.files.FS(), ".")
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			id, _, _ := strings.Cut(f.Name(), ".")
			names = append(names, id)
		}
	}
	slices.Sort(names)
	var ids []sandbox.ID
	for _, name := range slices.Compact(names) {
		if sandbox.ValidID(name) {
			ids = append(ids, sandbox.ID(name))
		}
	}
	return ids, nil
}

// wrong says what is wrong with an id; empty if nothing is. An error means that it
// cannot be seen now.
func (w *warden) wrong(id sandbox.ID) (string, error) {
	var s host.State
	err := fs.ErrNotExist
	if w.files != nil {
		s, err = host.ReadState(w.files, string(id))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "a start that was never finished, or an end: it has groups or a socket, and no state", nil
	case err != nil:
		return "its state cannot be read, so that no server finds its processes again: " + sandbox.Clip(err.Error(), 200), nil
	case s.Boot != w.boot:
		return "its state is of another boot of the host", nil
	}
	pidfd, err := s.Open(w.boot)
	if err != nil {
		return "", err
	}
	if pidfd == nil {
		return "its process 1 is gone, and its groups and files are left", nil
	}
	_ = pidfd.Close()
	if _, err := w.groups.Open(string(id)); fault.Is(err, fault.NotFound) {
		return "", fault.New(fault.State, "its process 1 (pid %d) runs outside of its groups, and cannot be told from a process of somebody else's", s.PID).
			WithRemedy("see what it is, and kill it by hand if it is the sandbox's")
	}
	if _, err := w.files.Lstat(string(id) + socketFile); errors.Is(err, fs.ErrNotExist) {
		return "it runs, and its socket is gone: nobody can reach it again", nil
	}
	return "", nil
}

// free ends what an id has of processes, and removes all but its disk.
func (w *warden) free(ctx context.Context, id sandbox.ID) error {
	if g, err := w.groups.Open(string(id)); err == nil {
		if err := g.Kill(); err != nil {
			return err
		}
		if err := g.Remove(ctx); err != nil {
			return err
		}
	}
	if w.files == nil {
		return nil
	}
	for _, name := range instanceFiles() {
		if err := w.files.Remove(string(id) + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
