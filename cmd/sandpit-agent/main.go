// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command sandpit-agent is process 1 of a sandbox. Package agent/server is what
// it does; this is how it is born in the native runtime.
package main

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"

	"sandpit.dev/agent/server"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/runtime/native/inside"
)

// The first thread stays the main goroutine's: it shows in /proc/1, no view may ever
// be locked to it, and the kernel tells it of orphans. Once main runs, a busy host may
// have moved the goroutine to another.
func init() { runtime.LockOSThread() }

func main() {
	// Nothing else runs here, since each hand-over from this goroutine to another
	// would be one between threads.
	server.DropSignals()
	ready := make(chan *server.Server, 1)
	go func() {
		serve(ready)
		os.Exit(1)
	}()
	// The kernel tells the first thread of the ends of orphans, and it alone.
	_ = (<-ready).RunInit()
	os.Exit(1)
}

// serve makes the inside ready, and serves as long as the process lives, which is as
// long as the sandbox does. It returns only when that fails.
func serve(ready chan<- *server.Server) {
	opts, err := inside.Setup()
	if errors.Is(err, boot.ErrAbandoned) {
		os.Exit(0)
	}
	var listener net.Listener
	if err == nil {
		f := os.NewFile(boot.ListenFD, "agent.sock")
		listener, err = net.FileListener(f)
		_ = f.Close()
	}
	if err != nil {
		_ = boot.Answer(boot.SocketFD, err)
		return
	}
	s := server.New(opts)
	if err := boot.Answer(boot.SocketFD, nil); err != nil {
		return
	}
	_ = os.NewFile(boot.SocketFD, "boot").Close()
	ready <- s
	_ = s.Serve(context.Background(), listener)
}
