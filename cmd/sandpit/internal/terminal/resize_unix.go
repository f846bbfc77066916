// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// Resizes returns a channel that receives when our terminal may have another size.
func Resizes() (_ <-chan os.Signal, stop func()) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGWINCH)
	return got, func() { signal.Stop(got) }
}
