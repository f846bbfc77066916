// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
	"sandpit.dev/runtime"
)

// busyTimeout bounds the wait for the mounts of a layer's last life to go.
const busyTimeout = 15 * time.Second

// mountDisk returns the step that mounts the layer which disk makes over the image.
func (s *start) mountDisk(disk diskMaker) step {
	return func(ctx context.Context) error {
		root, logs, err := s.i.mountDisk(ctx, s.spec, disk, s.ids)
		if err != nil {
			return err
		}
		s.undo.Add(func() { _ = root.Close() })
		s.root, s.files.Log = root, logs
		_, _ = s.hold(logs, nil)
		s.d.checkpoint("create.disk")
		return nil
	}
}

// mountVolumes makes the mounts of the volumes, and the places on the root where they go.
func (s *start) mountVolumes(context.Context) (err error) {
	if len(s.spec.Mounts) == 0 {
		return nil
	}
	s.undo.Add(func() { _ = s.i.remove(volumesFile) })
	s.volumes, err = s.i.openVolumes(s.spec.Mounts, s.root, s.ids.NS)
	s.d.checkpoint("create.volumes")
	return err
}

// mountDisk mounts a layer over the image, for the agent's user namespace: the root is a
// detached overlay, and holds what it needs; logs is the directory of the sandbox's logs.
func (i *Instance) mountDisk(ctx context.Context, spec runtime.Spec, disk diskMaker, uids uidRange) (root, logs *os.File, err error) {
	var held []io.Closer // the overlay has its own by the time it is mounted
	defer func() { i.d.closer.drop(held) }()
	hold := func(f *os.File, err error) (*os.File, error) {
		if err == nil {
			held = append(held, f)
		}
		return f, err
	}
	l, err := disk()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close() }()
	failed := func(err error) (*os.File, *os.File, error) { return nil, nil, i.noRoot(err) }
	if err := l.FreshWork(); err != nil {
		return nil, nil, err
	}
	image, err := hold(mount.CloneAt(unix.AT_FDCWD, spec.Image.Root))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(image, uids.NS); err != nil {
		return failed(err)
	}
	writable, err := hold(i.d.clone(l.Fd()))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(writable, uids.NS); err != nil {
		return failed(err)
	}
	kept, err := hold(i.d.layers.Logs(string(i.id)))
	if err != nil {
		return nil, nil, err
	}
	mapped, err := hold(i.d.clone(int(kept.Fd())))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(mapped, uids.NS); err != nil {
		return failed(err)
	}
	logs, err = openDir(int(mapped.Fd()), ".")
	if err != nil {
		return failed(err)
	}
	// A layer that stays busy is another server's, or a bug.
	limit, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	root, err = i.d.overlay(limit, image, writable, uids.Base)
	if errors.Is(err, unix.ESTALE) {
		// The kernel found an index in the work directory that is another upper directory's.
		// A copy's is made anew, yet this was seen once; the index is nobody's loss.
		i.d.log.Warn("the work directory of a layer was another's, and is made anew", "sandbox", i.id)
		if err = l.FreshWork(); err == nil {
			root, err = i.d.overlay(limit, image, writable, uids.Base)
		}
	}
	if err != nil {
		_ = logs.Close()
		return failed(err)
	}
	return root, logs, nil
}

// noRoot is the error of a root that cannot be made.
func (i *Instance) noRoot(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fault.NoSpace(i.FullDisk(), err, "the root of sandbox %s cannot be mounted: its disk has no room for that", i.id).
			WithRemedy("delete sandboxes, snapshots or volumes that are not needed, or give this one a larger disk")
	}
	return fault.Wrap(fault.Unavailable, err, "the root of sandbox %s cannot be mounted", i.id).
		WithRemedy("run `sandpit doctor` on the host")
}

func openDir(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
