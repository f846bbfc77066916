// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"sandpit.dev/fault"
)

// hostToolsTime bounds the installation of a tool on the host.
const hostToolsTime = 10 * time.Minute

// hostPath is where programs of the host are looked for, whatever PATH this
// process was started with.
var hostPath = [...]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// hostProgram returns a program's path, or "" when the host lacks it.
func hostProgram(name string) string {
	for _, dir := range hostPath {
		if path, err := exec.LookPath(dir + "/" + name); err == nil {
			return path
		}
	}
	return ""
}

// hostCommand is a short command of the host.
func hostCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	if path := hostProgram(name); path != "" {
		name = path
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = hostEnv()
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// debianKeyring is what mmdebstrap checks Debian's signatures with on a host
// that is not Debian itself.
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// needMmdebstrap installs mmdebstrap when the host lacks it.
func needMmdebstrap(ctx context.Context, w *work) error {
	if hostProgram("unshare") == "" || hostProgram("setpriv") == "" {
		return fault.New(fault.Unsupported, "the programs unshare and setpriv are missing on this host").
			WithRemedy("install the package util-linux")
	}
	_, keyErr := os.Stat(debianKeyring)
	if hostProgram("mmdebstrap") != "" && keyErr == nil {
		return nil
	}
	if hostProgram("apt-get") == "" {
		if hostProgram("mmdebstrap") != "" {
			return nil // the distribution may keep the keys elsewhere
		}
		return fault.New(fault.Unsupported, "this host has neither mmdebstrap nor apt-get to install it, so no image can be built here").
			WithRemedy("install mmdebstrap, or build the image on a Debian or Ubuntu host and point --images at a copy of its directory")
	}
	w.log.Info("installing mmdebstrap on this host with apt-get: images are built with it")
	w.progress(0, "installing mmdebstrap on this host with apt-get")
	install := []string{
		"-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "install",
		"mmdebstrap", "debian-archive-keyring", "gpg", "mount",
	}
	// The first try needs no network where the lists are there; a fresh machine
	// has none.
	err := hostInstall(ctx, w, install...)
	if err != nil {
		w.progress(0, "refreshing this host's package lists")
		err = hostInstall(ctx, w, "-q", "update")
		if err == nil {
			w.progress(0, "installing mmdebstrap on this host with apt-get")
			err = hostInstall(ctx, w, install...)
		}
	}
	if err != nil {
		return fmt.Errorf("installing mmdebstrap on the host: %w", err)
	}
	return nil
}

// hostInstall changes the host itself, so it is not killed when this process
// or ctx ends: dpkg killed in the middle leaves a host that needs repair. It
// gets a signal that it heeds between packages.
func hostInstall(ctx context.Context, w *work, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, hostToolsTime)
	defer cancel()
	cmd := hostCommand(ctx, "apt-get", args...)
	cmd.Stdout, cmd.Stderr = w.lines, w.lines
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	return cmd.Run()
}
