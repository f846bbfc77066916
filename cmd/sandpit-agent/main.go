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
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/runtime/native/inside"
)

func main() {
	// The first thread stays the main goroutine's: it shows in /proc/1, and no
	// view may ever be locked to it.
	runtime.LockOSThread()

	// Go's runtime takes a fault's signal that was queued with sigqueue(3) for a
	// fault of its own, whoever asked for it. Without a handler the kernel drops
	// it, and still ends the process for a real one.
	for _, sig := range []unix.Signal{unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSTKFLT, unix.SIGSYS} {
		var byDefault [4]uint64 // struct sigaction
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0); e != 0 {
			os.Exit(1)
		}
	}
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
	if err := s.Serve(context.Background(), listener); err != nil {
		os.Exit(1)
	}
}
