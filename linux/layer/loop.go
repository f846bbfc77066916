// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// loopBlockSize is the sector size of the loop device: btrfs reads and writes
// in units of it, and direct i/o on the file below needs no smaller ones.
const loopBlockSize = 4096

// retryEvery is the pause between two looks at something that another process
// holds for a moment.
const retryEvery = 10 * time.Millisecond

// A loopDevice is an open loop device that backs one file. While it is open,
// the device cannot go away; a mounted file system keeps it as well.
type loopDevice struct {
	fd       int
	path     string
	directIO bool
	found    bool // it backed the file already
}

func (d *loopDevice) Close() { unix.Close(d.fd) }

// attachLoop returns the loop device of file: the one that backs it already, or
// a new one. Two devices on one file would each cache and write it, and so
// destroy it: the caller holds the store's lock, so that no other server of
// ours attaches the file between the look and the attachment.
func attachLoop(file *os.File) (*loopDevice, error) {
	dev, err := findLoop(file)
	if dev != nil || err != nil {
		return dev, err
	}
	control, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "this host gives no loop devices: /dev/loop-control cannot be opened (%s)", err).
			WithRemedy("load the kernel module `loop`, and give the server /dev/loop-control")
	}
	defer unix.Close(control)
	// Others on this host may take the free device before we do.
	for range 64 {
		n, err := unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fault.Wrap(fault.Exhausted, err, "no free loop device (%s)", err)
		}
		dev, err := configureLoop(n, file)
		if err == unix.EBUSY {
			continue
		}
		return dev, err
	}
	return nil, fault.New(fault.Unavailable, "every free loop device was taken by somebody else before it could be used")
}

func configureLoop(n int, file *os.File) (*loopDevice, error) {
	path := fmt.Sprintf("/dev/loop%d", n)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "the loop device %s cannot be opened (%s)", path, err).
			WithRemedy("give the server the devices /dev/loop*")
	}
	config := unix.LoopConfig{Fd: uint32(file.Fd()), Size: loopBlockSize}
	// Autoclear: the device goes when its last user goes, also after a kill.
	// Direct i/o: without it each block is cached twice and flushed late.
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	copy(config.Info.File_name[:len(config.Info.File_name)-1], "sandpit "+filepath.Base(file.Name()))
	err = unix.IoctlLoopConfigure(fd, &config)
	if err == unix.EINVAL {
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		err = unix.IoctlLoopConfigure(fd, &config)
	}
	if err == unix.EBUSY {
		unix.Close(fd)
		return nil, err
	}
	if err != nil {
		unix.Close(fd)
		return nil, fault.Wrap(fault.Unsupported, err, "the loop device %s cannot be set up (%s)", path, err)
	}
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("status of %s: %w", path, err)
	}
	return &loopDevice{fd: fd, path: path, directIO: info.Flags&unix.LO_FLAGS_DIRECT_IO != 0}, nil
}

// findLoop returns the loop device that backs file, or nil. The file is known by
// device and inode: its path may be another for who attached it.
func findLoop(file *os.File) (*loopDevice, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, err
	}
	bound, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	for _, sys := range bound {
		path := "/dev/" + strings.Split(sys, "/")[3]
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENXIO) {
			continue // it is being cleared: its last user is gone
		}
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the loop device %s is in use and cannot be looked at (%s), and it may back the store", path, err).
				WithRemedy("give the server the devices /dev/loop*")
		}
		// From here on our descriptor keeps the device bound.
		info, err := unix.IoctlLoopGetStatus64(fd)
		if err != nil || info.Device != st.Dev || info.Inode != st.Ino {
			unix.Close(fd)
			continue
		}
		if info.Offset != 0 || info.Sizelimit != 0 || info.Flags&unix.LO_FLAGS_READ_ONLY != 0 {
			unix.Close(fd)
			return nil, fault.New(fault.State, "%s is attached to %s in a way that is not ours (read-only, or a part of it)", file.Name(), path).
				WithRemedy("detach it: losetup -d %s", path)
		}
		return &loopDevice{fd: fd, path: path, directIO: info.Flags&unix.LO_FLAGS_DIRECT_IO != 0, found: true}, nil
	}
	return nil, nil
}

// mountLoop mounts the btrfs on dev detached: in no mount namespace, reachable
// by the descriptor alone, gone with its last user. If the file system is
// mounted already (a sandbox outlived the server), it is the same one.
func mountLoop(ctx context.Context, dev *loopDevice) (int, error) {
	for {
		fd, err := mountOnce(dev)
		if !errors.Is(err, unix.EBUSY) {
			return fd, err
		}
		// The last mount of a killed server is being taken down.
		select {
		case <-ctx.Done():
			return -1, fault.Wrap(fault.Unavailable, err, "%s is still in use by a mount that is going away", dev.path)
		case <-time.After(retryEvery):
		}
	}
}

func mountOnce(dev *loopDevice) (int, error) {
	fs, err := unix.Fsopen("btrfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fault.Wrap(fault.Unsupported, err, "this kernel has no btrfs (%s)", err).
			WithRemedy("load the kernel module: modprobe btrfs")
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetString(fs, "source", dev.path); err != nil {
		return -1, fmt.Errorf("source %s: %w", dev.path, err)
	}
	for _, option := range [][2]string{
		// The file is sparse: what sandboxes delete goes back to the host.
		{"discard", "async"},
		{"space_cache", "v2"},
	} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("mount option %s=%s: %w", option[0], option[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fault.Wrap(fault.Unavailable, fmt.Errorf("%w: %s", err, kernelLog(fs)),
			"the store on %s cannot be mounted (%s)", dev.path, err).
			WithRemedy("see the kernel's log, and run `btrfs check` on the store's file while the server is down")
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOATIME|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return -1, fmt.Errorf("fsmount: %w", err)
	}
	return fd, nil
}

// canClone reports whether a mount that is in no namespace can be cloned, as the
// idmapped view of a layer needs (Linux 6.15).
func canClone(mount int) error {
	clone, err := unix.OpenTree(mount, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return fault.Wrap(fault.Unsupported, err, "this kernel cannot clone a mount that is in no mount namespace (%s)", err).
			WithRemedy("use Linux 6.15 or later, or a data directory on btrfs")
	}
	unix.Close(clone)
	return nil
}

// kernelLog reads what the kernel said about a file system context.
func kernelLog(fs int) string {
	var lines []string
	buf := make([]byte, 1024)
	for range 16 {
		n, err := unix.Read(fs, buf)
		if err != nil || n <= 0 {
			break
		}
		lines = append(lines, strings.TrimSpace(string(buf[:n])))
	}
	return strings.Join(lines, "; ")
}
