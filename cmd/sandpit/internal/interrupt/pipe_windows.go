// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package interrupt

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// outputBroken is false: Windows has no signal for it, and a write tells.
func outputBroken() bool { return false }

// PipeBroken reports whether a write failed because the pipe has no reader any more.
func PipeBroken(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA) || errors.Is(err, syscall.EPIPE)
}
