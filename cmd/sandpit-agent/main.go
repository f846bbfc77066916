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

func main() {
	// The first thread stays the main goroutine's: it shows in /proc/1, and no
	// view may ever be locked to it.
	runtime.LockOSThread()

	server.DropSignals()
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
		_ = boot.Answer(boot.SocketFD, boot.Reply{Error: err.Error()})
		os.Exit(1)
	}
	s := server.New(opts)
	if err := boot.Answer(boot.SocketFD, boot.Reply{}); err != nil {
		os.Exit(1)
	}
	_ = os.NewFile(boot.SocketFD, "boot").Close()
	// Both last as long as the process, which is as long as the sandbox.
	go func() { _ = s.RunInit(context.Background()) }()
	// Not on this goroutine: it is bound to the first thread, and each connection
	// would wake that thread only to hand it on.
	ended := make(chan error)
	go func() { ended <- s.Serve(context.Background(), listener) }()
	<-ended
	os.Exit(1)
}
