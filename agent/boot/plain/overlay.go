// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/overroot"
)

// mountRights are the capabilities that mounting the root takes, and nothing else: SETPCAP is what they are dropped by.
var mountRights = [...]uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP}

// selfProgram is this program, also where the root is another by now.
const selfProgram = "/proc/self/exe"

// overlay makes an overlay over the container's root the root, and begins this program again as it would have begun without: with no right
// to mount, and a filter that keeps all from what a container's maker allows those who have it. It returns only if that fails.
func (c *Config) overlay() error {
	if err := inUserNamespace(); err != nil {
		return err
	}
	if err := overroot.Enter(c.Overlay, c.FreshOverlay); err != nil {
		return fmt.Errorf("have the root on the disk: %w", err)
	}
	for _, right := range mountRights {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", right, err)
		}
	}
	if err := refuseMounts(); err != nil {
		return err
	}
	again := *c
	again.Overlay, again.FreshOverlay = "", false
	text, err := json.Marshal(again)
	if err != nil {
		return err
	}
	// The kernel ends all other threads, and gives root no capability that this one's bounding set lacks.
	return os.NewSyscallError("execve", syscall.Exec(selfProgram, []string{os.Args[0], "serve", string(text)}, os.Environ()))
}

// checkOverlay returns what is wrong with a configuration that has one.
func (c *Config) checkOverlay() error {
	switch {
	case c.Overlay == "":
		return nil
	case !filepath.IsAbs(c.Overlay) || filepath.Clean(c.Overlay) != c.Overlay || c.Overlay == "/":
		return fmt.Errorf("the configuration is not valid: overlay: %q is not the clean absolute path of a directory", c.Overlay)
	case c.Server == nil:
		return errors.New("the configuration is not valid: overlay: the agent begins again by an argument, which others may read; give server in place of key")
	}
	return nil
}

// inUserNamespace returns an error where the container's root is the machine's: what may mount there may do anything.
func inUserNamespace() error {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return err
	}
	var inside, outside, count uint64
	if _, err := fmt.Sscan(string(text), &inside, &outside, &count); err != nil {
		return fmt.Errorf("read the users of this namespace: %w", err)
	}
	if outside == 0 {
		return errors.New("the container has no user namespace of its own, and the right to mount: its root would be the node's")
	}
	return nil
}
