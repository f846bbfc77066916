// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/mount"
)

// overlayAttrs and overlayParams are of every overlay.
//
// It is not volatile: an fsync inside is an fsync. index and nfs_export make
// file handles of the overlay decodable, which tracking of changes needs. It keeps no
// times of access: a layer on btrfs has none anyway, and to look at each read whether
// one is to be written takes a third of opening and reading a small file.
const overlayAttrs = unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOATIME

func overlayParams() []mount.Param {
	return []mount.Param{
		{Key: "index", Value: "on"},
		{Key: "nfs_export", Value: "on"},
		// Whatever the host's default is: a layer says by itself what is in it, so that it
		// can be compared and exported.
		{Key: "redirect_dir", Value: "nofollow"},
	}
}

// overlay mounts, detached, the layer over the image, both seen through the
// user namespace's map: on disk all ids stay canonical, and root is 0. Both are
// detached mounts, and layer's is of a directory with `upper` and `work`.
//
// The kernel lets go of a sandbox's mounts some time after its last process, and
// refuses the layer until then; nothing tells when. So a busy layer is tried
// again, until ctx is done.
func (d *Driver) overlay(ctx context.Context, image, layer *os.File, base uint32) (m *os.File, err error) {
	try := mountOverlay
	if d.yard != nil {
		try = d.mountInYard
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		m, err = try(image, layer, base)
		if !errors.Is(err, unix.EBUSY) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// mountOverlay mounts with the file-system ids of the sandbox's root: overlay makes its
// work directory with the ids of the thread that mounts it, and they must exist in the
// map, or it mounts read-only and tells nobody.
func mountOverlay(image, layer *os.File, base uint32) (m *os.File, err error) {
	upper, err := openDir(int(layer.Fd()), "upper")
	if err != nil {
		return nil, err
	}
	defer func() { _ = upper.Close() }()
	work, err := openDir(int(layer.Fd()), "work")
	if err != nil {
		return nil, err
	}
	defer func() { _ = work.Close() }()
	params := append([]mount.Param{{Key: "lowerdir+", File: image}, {Key: "upperdir", File: upper}, {Key: "workdir", File: work}}, overlayParams()...)
	if failed := withFileIDs(base, base, func() { m, err = mount.New("overlay", overlayAttrs, params...) }); failed != nil {
		return nil, failed
	}
	return m, err
}

// mountInYard is mountOverlay for kernels that need a yard. A layer that was refused is
// attached once more: what was is let go of.
func (d *Driver) mountInYard(image, layer *os.File, base uint32) (*os.File, error) {
	as := func(fn func()) error { return withFileIDs(base, base, fn) }
	return d.yard.Overlay(image, layer, overlayAttrs, as, overlayParams()...)
}

// clone makes a detached copy of the part of the store that dir is open on.
func (d *Driver) clone(dir int) (*os.File, error) {
	m, err := mount.CloneAt(dir, "")
	if err != nil && d.yard != nil {
		return d.yard.CloneAt(dir, "") // the store is a loop file's, and attached there
	}
	return m, err
}

// withFileIDs runs fn with other file-system ids and all capabilities.
func withFileIDs(uid, gid uint32, fn func()) error {
	runtime.LockOSThread() // stays locked where its ids are not as before: the thread ends then
	// Setting the ids must not take the capabilities away.
	const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noSetuidFixup, 0, 0, 0); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	fn()
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, 0, 0, 0)
	if unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0) == nil {
		runtime.UnlockOSThread()
	}
	return nil
}
