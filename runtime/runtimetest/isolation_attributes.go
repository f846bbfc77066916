// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// unguarded returns why this kernel refuses attributes of security modules to nobody, empty where it
// does refuse them. Debian's Linux 6.1 lets anybody set those of modules that are not loaded, on the
// host as in a sandbox.
func unguarded(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "attributes")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its lost capabilities
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			result <- err
			return
		}
		result <- unix.Lsetxattr(path, "security.evil", []byte("y"), 0)
	}()
	switch err := <-result; {
	case err == nil:
		return "this kernel lets a process without capabilities set attributes of security modules"
	case !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP):
		t.Fatal(err)
	}
	return ""
}
