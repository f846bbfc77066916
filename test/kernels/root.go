// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rootSuite is the release that the machines run, whatever their kernel.
const rootSuite = "trixie"

// diskSize is of the machine's disk, which is sparse. The store of a server takes at most
// half of it.
const diskSize = "16G"

// included is what a user's server may need, and what makes an initial ram disk.
var included = []string{
	"systemd-sysv", "udev", "kmod", "dbus", "initramfs-tools", "busybox", "btrfs-progs", "e2fsprogs",
	"procps", "python3", "util-linux", "mount", "iproute2", "ca-certificates", "libcap2-bin",
}

// service starts the program on the second disk, and ends the machine with it.
const service = `[Unit]
Description=checks
After=multi-user.target
[Service]
Type=oneshot
ExecStartPre=/bin/mount /dev/vdb /mnt
ExecStart=/mnt/inside /mnt
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStopPost=/sbin/poweroff -f
[Install]
WantedBy=default.target
`

// quiet is what the machine must not do meanwhile.
var quiet = []string{"apt-daily.timer", "apt-daily-upgrade.timer", "systemd-timesyncd.service", "serial-getty@ttyS0.service", "getty@tty1.service"}

func (c *cache) root() string { return c.path("root") }
func (c *cache) disk() string { return c.path("root.img") }

// makeRoot makes the machines' first disk, with the modules of all kernels. It is made anew
// when the list of what is in it changed.
func (c *cache) makeRoot(kernels []kernel) error {
	for _, program := range []string{"mmdebstrap", "mkfs.ext4", "qemu-system-x86_64"} {
		if _, err := c.do("sh", "-c", "command -v "+program); err != nil {
			return fmt.Errorf("%s is missing: apt-get install mmdebstrap e2fsprogs qemu-system-x86", program)
		}
	}
	made := c.path("root.list")
	base := strings.Join(included, " ") + "\n" + service
	want := base
	for _, k := range kernels {
		want += k.release + "\n"
	}
	have, _ := os.ReadFile(made) // none: nothing is made
	if contains(string(have), want) && exists(c.disk()) {
		return nil
	}
	if err := os.RemoveAll(made); err != nil {
		return err
	}
	if !contains(string(have), base) { // another system, or half of one
		if err := os.RemoveAll(c.root()); err != nil {
			return err
		}
	}
	if err := c.bootstrap(); err != nil {
		return err
	}
	for _, k := range kernels {
		if err := c.addKernel(k); err != nil {
			return err
		}
	}
	c.say("making the machines' disk")
	tmp := c.disk() + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if _, err := c.do("mkfs.ext4", "-q", "-F", "-d", c.root(), tmp, diskSize); err != nil {
		return err
	}
	if err := os.Rename(tmp, c.disk()); err != nil {
		return err
	}
	releases, err := os.ReadDir(filepath.Join(c.root(), "usr/lib/modules"))
	if err != nil {
		return err
	}
	for _, release := range releases { // those of earlier runs, too
		base += release.Name() + "\n"
	}
	return os.WriteFile(made, []byte(base), 0o644)
}

// contains reports whether all lines of want are in have, which may know more kernels.
func contains(have, want string) bool {
	lines := strings.Split(have, "\n")
	for line := range strings.SplitSeq(want, "\n") {
		if !slices.Contains(lines, line) {
			return false
		}
	}
	return true
}

// bootstrap builds the system without a kernel.
func (c *cache) bootstrap() error {
	if exists(filepath.Join(c.root(), "etc/systemd/system/checks.service")) {
		return nil
	}
	c.say("building a small Debian %s", rootSuite)
	_, err := c.doIn("", []string{"TMPDIR=" + c.dir}, "mmdebstrap", "--mode=root", "--format=directory", "--variant=minbase",
		"--include="+strings.Join(included, ","), "--dpkgopt=force-unsafe-io", rootSuite, c.root(), c.path("apt", "root.sources"))
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"etc/fstab":                         "/dev/vda / ext4 defaults 0 1\n",
		"etc/hostname":                      "kernels\n",
		"etc/initramfs-tools/modules":       "virtio_pci\nvirtio_blk\next4\n",
		"etc/initramfs-tools/conf.d/checks": "MODULES=list\nCOMPRESS=gzip\n",
		"etc/modprobe.d/checks.conf":        "blacklist floppy\n",
	} {
		at := filepath.Join(c.root(), path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return err
		}
	}
	units := filepath.Join(c.root(), "etc/systemd/system")
	wants := filepath.Join(units, "default.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return err
	}
	for _, unit := range quiet {
		at := filepath.Join(units, unit)
		if err := os.RemoveAll(at); err != nil {
			return err
		}
		if err := os.Symlink("/dev/null", at); err != nil {
			return err
		}
	}
	if err := os.Symlink("../checks.service", filepath.Join(wants, "checks.service")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(units, "checks.service"), []byte(service), 0o644) // last: it marks that all is there
}

// addKernel puts a kernel's modules into the system, and makes its initial ram disk there.
func (c *cache) addKernel(k kernel) error {
	at := filepath.Join(c.root(), "usr/lib/modules", k.release)
	if exists(c.initrd(k)) && exists(at) {
		return nil
	}
	modules, err := k.modules()
	if err != nil {
		return err
	}
	config, err := k.config()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	for _, copy := range [][2]string{
		{modules, at},
		{config, filepath.Join(c.root(), "boot", "config-"+k.release)},
	} {
		if _, err := c.do("cp", "-a", "--", copy[0], copy[1]); err != nil {
			return err
		}
	}
	if _, err := c.do("chroot", c.root(), "depmod", k.release); err != nil {
		return err
	}
	made := "/boot/initrd.img-" + k.release
	if _, err := c.do("chroot", c.root(), "mkinitramfs", "-o", made, k.release); err != nil {
		return err
	}
	return os.Rename(filepath.Join(c.root(), made), c.initrd(k))
}

func (c *cache) initrd(k kernel) string { return c.path("kernels", "initrd-"+k.release) }
