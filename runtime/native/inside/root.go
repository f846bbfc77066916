// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/runtime/native/mount"
)

// masked are kernel files that tell of the host, or reach into it. They read as
// empty. Those that this kernel lacks are passed over.
var masked = [...]string{
	"/proc/acpi", "/proc/asound", "/proc/cmdline", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys",
	"/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/partitions", "/proc/sched_debug",
	"/proc/scsi", "/proc/slabinfo", "/proc/softirqs", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
}

// readOnly are kernel directories that commands may read and never write, also
// where a namespace of theirs would let them.
var readOnly = [...]string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr"}

const shmSize = "64m"

// enterRoot makes f.Root the root of this process, furnished.
func enterRoot(f boot.Files) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	proc, err := mount.New("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	sys, err := mount.New("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_RDONLY,
		mount.Param{Key: "mode", Value: "0555"}, mount.Param{Key: "size", Value: "4k"})
	if err != nil {
		return err
	}
	pts, err := mount.New("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC,
		mount.Param{Key: "newinstance", Flag: true}, mount.Param{Key: "ptmxmode", Value: "0666"}, mount.Param{Key: "mode", Value: "0620"},
		mount.Param{Key: "max", Value: "64"})
	if err != nil {
		return err
	}
	shm, err := mount.New("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC,
		mount.Param{Key: "mode", Value: "1777"}, mount.Param{Key: "size", Value: shmSize})
	if err != nil {
		return err
	}

	// The overlay is attached over the host's root, which it replaces.
	host, err := os.OpenFile("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	if err := mount.Move(f.Root, host); err != nil {
		return err
	}
	for _, m := range []struct {
		mount *os.File
		at    string
	}{{f.Dev, "dev"}, {pts, "dev/pts"}, {shm, "dev/shm"}, {proc, "proc"}, {sys, "sys"}} {
		at, err := point(f.Root, m.at)
		if err != nil {
			return err
		}
		if err := mount.Move(m.mount, at); err != nil {
			return err
		}
		_ = at.Close()
		_ = m.mount.Close()
	}
	if err := unix.Fchdir(int(f.Root.Fd())); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	_ = host.Close()
	_ = f.Root.Close()
	return nil
}

// point opens the mount point at path below root, making it where the image
// has none. What is there may have been put there by hostile code: links are
// not followed.
func point(root *os.File, path string) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(int(root.Fd()), path, &how)
	if errors.Is(err, unix.ENOENT) {
		if err = unix.Mkdirat(int(root.Fd()), path, 0o755); err == nil {
			fd, err = unix.Openat2(int(root.Fd()), path, &how)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the image's /%s cannot be a mount point: %w", path, err)
	}
	return os.NewFile(uintptr(fd), "/"+path), nil
}

// mask hides and freezes kernel files. The paths are on our own procfs.
func mask() error {
	for _, path := range masked {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			continue
		}
		var err error
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=555")
		} else {
			err = unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("mask %s: %w", path, err)
		}
	}
	for _, path := range readOnly {
		if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
		const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
		if err := unix.Mount("", path, "", flags, ""); err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	return nil
}

// loopback brings up the only interface that there is.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}
