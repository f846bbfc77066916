// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command mum is a process 1 that takes what a server sends, and never serves.
package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime/native/boot"
)

// word is what it says; "": nothing, and it stays.
var word string

func main() {
	if _, _, err := boot.Receive(boot.SocketFD); err != nil {
		os.Exit(0)
	}
	if word != "" {
		_ = boot.Answer(boot.SocketFD, errors.New(word))
		os.Exit(1)
	}
	for {
		_ = unix.Pause()
	}
}
