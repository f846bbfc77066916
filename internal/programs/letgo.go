// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// LetGo detaches from the thread's namespace what others have mounted below the directory of temporary
// files. It would stay mounted here when they unmount it, with all that it holds. What dir is in stays.
func LetGo(dir string) error {
	info, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(info)) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasPrefix(f[4], os.TempDir()+"/") || strings.HasPrefix(dir+"/", f[4]+"/") {
			continue
		}
		// One below another went with it; one of a name with a space or a backslash in it stays.
		if err := unix.Unmount(f[4], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("what others mounted: %s: %w", f[4], err)
		}
	}
	return nil
}
