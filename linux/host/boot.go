// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"strings"
)

// BootID returns what tells this boot of the host from others. It is clipped, so that a state fits
// into an inode: 16 of its digits are 60 random bits.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")
	if err == nil && len(id) < 16 {
		err = fmt.Errorf("%q is not a valid boot id", id)
	}
	if err != nil {
		return "", err
	}
	return id[:16], nil
}
