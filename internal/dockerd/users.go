// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// An Engine that maps users runs containers as those of one user's range, which it finds in files of /etc.
const (
	mappedUser  = "sandpit-containers"
	mappedFirst = 0x30000000 // no range of a sandbox of the native runtime, nor one that a host gives out
	mappedCount = 1 << 16
)

// addUser adds the user, and its range but for the first ids of it, to files of the thread's own /etc.
func addUser(without int) error {
	ids := fmt.Sprintf("%s:%d:%d\n", mappedUser, mappedFirst+without, mappedCount-without)
	for _, f := range []struct{ name, line string }{
		{"passwd", fmt.Sprintf("%s:x:%d:%d::/nonexistent:/bin/false\n", mappedUser, mappedFirst, mappedFirst)},
		{"group", fmt.Sprintf("%s:x:%d:\n", mappedUser, mappedFirst)},
		{"subuid", ids}, {"subgid", ids},
	} {
		if err := appendLine("/etc/"+f.name, f.line); err != nil {
			return err
		}
	}
	return nil
}

func appendLine(path, line string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteString(line)
	return err
}

// mappingOf returns a user namespace with the Engine's mapping. The caller closes it.
func mappingOf() (_ *os.File, err error) {
	cmd := exec.Command("cat") // lives until its input ends
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: mappedFirst, Size: mappedCount}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("a user namespace: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
}
