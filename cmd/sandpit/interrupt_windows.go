// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// outputBroken is false: Windows has no signal for it, and a write tells.
func outputBroken() bool { return false }

// pipeBroken reports whether a write failed because the pipe has no reader any more.
func pipeBroken(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA) || errors.Is(err, syscall.EPIPE)
}

// resized returns a channel that never receives: Windows has no signal for it.
func resized() (_ <-chan os.Signal, stop func()) { return nil, func() {} }
