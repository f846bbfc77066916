// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Clip shortens s for a message, on a character's border.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// NoSpace returns the error of a disk without room. A limit of the sandbox's own is EDQUOT;
// ENOSPC is the disk below, which all sandboxes share.
func NoSpace(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if errors.Is(err, unix.EDQUOT) {
		return fault.NoSpace(fault.SandboxDisk, err, "%s: the sandbox's disk limit is reached", what).
			WithRemedy("delete files in the sandbox, or give it a larger disk")
	}
	return fault.NoSpace(fault.StoreDisk, err, "%s: the disk that all sandboxes share is full", what).
		WithRemedy("delete sandboxes or snapshots that are not needed, or give the store a larger disk")
}

// Of is the kernel's word for an error.
func Of(err error) string {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}
