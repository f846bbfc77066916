// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// errUntried: only root can find out.
var errUntried = errors.New("it is not loaded, and only root can find out whether it can be")

// fileSystems finds out which types of file systems the kernel has. Most kernels have
// them as modules, which they load when one is first asked for, as the runtime does.
type fileSystems struct {
	loaded  string                  // the file that lists those that are there now
	modules string                  // the directory of the running kernel's modules
	ask     func(name string) error // for the type; loads its module
}

func hostFileSystems() fileSystems {
	return fileSystems{
		loaded:  "/proc/filesystems",
		modules: "/lib/modules/" + kernelRelease(),
		ask: func(name string) error {
			fd, err := unix.Fsopen(name, unix.FSOPEN_CLOEXEC)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		},
	}
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// find returns nil if the kernel has the type or can load it, errUntried if this process may not
// ask, and else why not, with a remedy.
func (f fileSystems) find(name string) error {
	if b, err := os.ReadFile(f.loaded); err == nil && slices.Contains(strings.Fields(string(b)), name) {
		return nil
	}
	err := f.ask(name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return errUntried
	case !errors.Is(err, unix.ENODEV):
		return fault.Wrap(fault.Unsupported, err, "the kernel does not open the file system %s (%s)", name, err).
			WithRemedy("see the kernel's log")
	}
	release := filepath.Base(f.modules)
	index, err := os.ReadFile(filepath.Join(f.modules, "modules.dep"))
	switch {
	case err != nil:
		return fault.New(fault.Unsupported, "the kernel has no file system %s, and the modules of the running kernel %s are not installed", name, release).
			WithRemedy("if the kernel was updated, boot into the new one; else apt-get install linux-image-%s (Ubuntu: linux-modules-%s)", release, release)
	case strings.Contains(string(index), "/"+name+".ko"):
		return fault.New(fault.Unsupported, "the kernel has the file system %s as a module and does not load it by itself", name).
			WithRemedy("modprobe %s (apt-get install kmod where there is no modprobe), and its name in a file of /etc/modules-load.d", name)
	}
	return fault.New(fault.Unsupported, "the kernel %s has no file system %s, neither built in nor as a module", release, name).
		WithRemedy("install a kernel that has it: apt-get install linux-image-amd64 (Ubuntu: linux-modules-extra-%s)", release)
}

func (f fileSystems) checkOverlay() Check {
	switch err := f.find("overlay"); {
	case err == nil:
		return ok("overlay", "yes")
	case errors.Is(err, errUntried):
		return warning("overlay", "run this with sudo", "%v", err)
	default:
		return failure("overlay", fault.As(err).Remedy, "%s", fault.As(err).Message)
	}
}

func (f fileSystems) checkBtrfs(loopControl string) Check {
	const name, worse = "btrfs", "disk limits cannot be enforced without it"
	if _, err := exec.LookPath("mkfs.btrfs"); err != nil {
		return warning(name, "apt-get install btrfs-progs", "there is no mkfs.btrfs: %s", worse)
	}
	switch err := f.find("btrfs"); {
	case errors.Is(err, errUntried):
		return warning(name, "run this with sudo", "%v", err)
	case err != nil:
		return warning(name, fault.As(err).Remedy, "%s: %s", fault.As(err).Message, worse)
	}
	// The device loads its module when it is opened.
	fd, err := unix.Open(loopControl, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		_ = unix.Close(fd)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return warning(name, "run this with sudo", "only root can find out whether there are loop devices")
	default:
		return warning(name, "modprobe loop, or put the data directory on btrfs", "there are no loop devices (%v): %s", err, worse)
	}
	return ok(name, "tools, kernel and loop devices")
}
