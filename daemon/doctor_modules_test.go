// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDoctorAsksTheKernelForFileSystems(t *testing.T) {
	const release = "6.1.0-50-cloud-amd64"
	for _, c := range []struct {
		name, loaded, index string // no index: no directory of modules
		answer              error
		asks                bool
		want                CheckStatus
		says, remedy        string
	}{
		{"ItIsThere", "nodev\tproc\nnodev\toverlay\n", "", unix.ENODEV, false, Passed, "yes", ""},
		{"ItIsAModuleThatLoadsByItself", "nodev\tproc\n", "", nil, true, Passed, "yes", ""},
		{"ItIsAModuleThatDoesNot", "", "kernel/fs/overlayfs/overlay.ko.xz:\n", unix.ENODEV, true, Failed, "does not load it by itself", "modprobe overlay"},
		{"ItIsNoModule", "", "kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko\n", unix.ENODEV, true, Failed, "neither built in nor as a module", "apt-get install"},
		{"TheModulesAreGone", "", "", unix.ENODEV, true, Failed, "modules of the running kernel " + release, "boot into the new one"},
		{"OnlyRootMayAsk", "", "", unix.EPERM, true, Warned, "only root", "sudo"},
		{"ItIsBroken", "", "", unix.EIO, true, Failed, "input/output error", "the kernel's log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			f := fileSystems{loaded: filepath.Join(dir, "filesystems"), modules: filepath.Join(dir, release)}
			asked := false
			f.ask = func(name string) error {
				asked = true
				if name != "overlay" {
					t.Errorf("asked for %q", name)
				}
				return c.answer
			}
			write := func(path, text string) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(f.loaded, c.loaded)
			if c.index != "" {
				if err := os.Mkdir(f.modules, 0o700); err != nil {
					t.Fatal(err)
				}
				write(filepath.Join(f.modules, "modules.dep"), c.index)
			}
			got := f.checkOverlay()
			if got.Status != c.want || !strings.Contains(got.Detail, c.says) || !strings.Contains(got.Remedy, c.remedy) || (got.Remedy == "") != (c.want == Passed) {
				t.Errorf("got %+v, want %s that says %q, with the remedy %q", got, c.want, c.says, c.remedy)
			}
			if asked != c.asks {
				t.Errorf("the kernel was asked: %v, want %v", asked, c.asks)
			}
		})
	}
}

func TestDoctorFindsWhatThisKernelHas(t *testing.T) {
	f := hostFileSystems()
	if err := f.find("proc"); err != nil {
		t.Errorf("proc: %v", err)
	}
	if err := f.find("no-such-file-system"); err == nil {
		t.Error("a file system that nobody made is found")
	}
	f.loaded = "/dev/null" // so that it has to ask
	if err := f.find("overlay"); os.Geteuid() == 0 && err != nil {
		t.Errorf("overlay, which the runtime's tests mount: %v", err)
	}
}

func TestDoctorLooksForLoopDevices(t *testing.T) {
	f := fileSystems{loaded: filepath.Join(t.TempDir(), "filesystems")}
	if err := os.WriteFile(f.loaded, []byte("\tbtrfs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "mkfs.btrfs"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if got := f.checkBtrfs("/dev/null"); got.Status != Passed {
		t.Errorf("got %+v", got)
	}
	if got := f.checkBtrfs(filepath.Join(bin, "missing")); got.Status != Warned || !strings.Contains(got.Remedy, "modprobe loop") {
		t.Errorf("without loop devices: got %+v", got)
	}
	t.Setenv("PATH", t.TempDir())
	if got := f.checkBtrfs("/dev/null"); got.Status != Warned || !strings.Contains(got.Remedy, "btrfs-progs") {
		t.Errorf("without tools: got %+v", got)
	}
}
