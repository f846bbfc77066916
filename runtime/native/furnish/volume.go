// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/spawn"
)

// Volume is a detached mount, and the directory of the sandbox's root where it goes.
type Volume struct {
	Tree *os.File
	At   *os.File // below the overlay that Inside was given
	Path string   // for errors
}

// Attach mounts volumes in the sandbox whose process 1 pidfd is open on, after Inside.
// Both views have them: the user's follows process 1's, also where its directory is a
// mount of its own. It blocks its thread for some tenths of a millisecond. After an error
// some may be mounted.
func (t *Script) Attach(pidfd *os.File, volumes []Volume) error {
	script := spawn.Script{Method: t.script.Method}
	none := script.Text("")
	params := make([]uintptr, 0, 2*len(volumes))
	for n, v := range volumes {
		script.Do(fmt.Sprintf("mount a volume at %s", v.Path), spawn.Never, unix.SYS_MOVE_MOUNT, spawn.Param(2*n), none, spawn.Param(2*n+1), none,
			spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
		params = append(params, v.Tree.Fd(), v.At.Fd())
	}
	opened, err := script.Run(pidfd, params...)
	runtime.KeepAlive(volumes)
	if err != nil {
		return err
	}
	opened.Close()
	return nil
}
