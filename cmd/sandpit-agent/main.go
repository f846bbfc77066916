// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command sandpit-agent is process 1 of a sandbox. Package agent/server is what
// it does; this is how it is born: without arguments by the native runtime, which hands all to
// it that it needs, as `sandpit-agent serve FILE|JSON` in any container, and beside such a one as `sandpit-agent relay SOCKET`
// and, for a moment, as `sandpit-agent step NAME [IP:PORT]` or `sandpit-agent install DIR` or `sandpit-agent places JSON`; see package plain. As
// `sandpit-agent reach first|last [IP:PORT]` it tries what a cluster's network lets through. Under the name sudo it is the sandbox's sudo, see
// package agent/sudo.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"runtime"

	"sandpit.dev/agent/boot/plain"
	"sandpit.dev/agent/server"
	"sandpit.dev/agent/sudo"
	"sandpit.dev/agent/sudo/program"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/runtime/native/inside"
)

// The start is one goroutine's on one thread, the first, which server.BecomeInit wants: each hand-over
// would be one between threads. Once main runs, a busy host may have moved the goroutine to another.
// Sudo is no process 1, and starts without the thread that this costs.
func init() {
	if !isSudo() {
		runtime.LockOSThread()
	}
}

// isSudo reports whether this is the sandbox's sudo, which is this program by another name.
func isSudo() bool { return len(os.Args) > 0 && path.Base(os.Args[0]) == path.Base(sudo.Program) }

func main() {
	if isSudo() {
		os.Exit(program.Main(os.Args[1:]))
	}
	switch {
	case len(os.Args) == 3:
		told(os.Args[1], os.Args[2], "")
	case len(os.Args) == 4 && (os.Args[1] == "step" || os.Args[1] == "reach"):
		told(os.Args[1], os.Args[2], os.Args[3])
	}
	if err := serve(); errors.Is(err, boot.ErrAbandoned) {
		os.Exit(0)
	}
	os.Exit(1)
}

const (
	exitKept     = 3 // of reach, where the server was not reached
	exitOwnStack = 8 // is added to it, and to 0, where the network is not the kernel's
	exitBlocked  = 4 // of places, where something else is than a directory
)

// told does what a command line says.
func told(word, arg, more string) {
	var err error
	switch word {
	case "serve":
		err = plain.Serve(context.Background(), arg)
	case "relay":
		err = plain.Relay(context.Background(), arg)
	case "install":
		err = plain.Install(arg)
	case "places":
		err = plain.MakePlaces(arg)
	case "step":
		err = plain.Step(arg, more)
	case "reach":
		err = plain.Reach(arg, more)
	default:
		err = fmt.Errorf("%q is none of \"serve\", \"relay\", \"step\", \"install\", \"places\" and \"reach\"", word)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandpit-agent:", err)
	}
	code := 1
	switch {
	case err == nil:
		code = 0
	case errors.Is(err, plain.ErrKept):
		code = exitKept
	case errors.Is(err, plain.ErrBlocked):
		code = exitBlocked
	}
	if word == "reach" && code != 1 && !plain.HasKernelStack() {
		code += exitOwnStack
	}
	os.Exit(code)
}

// serve makes the inside ready, and serves as long as the process lives, which is as
// long as the sandbox does. It returns only when that fails.
func serve() error {
	err := server.BecomeInit()
	var opts server.Options
	var asked *os.File
	if err == nil {
		opts, asked, err = inside.Setup()
	}
	if errors.Is(err, boot.ErrAbandoned) {
		return err
	}
	var listener, sudoers net.Listener
	if err == nil {
		listener, err = listen(os.NewFile(boot.ListenFD, "agent.sock"))
	}
	if err == nil {
		sudoers, err = listen(asked)
	}
	var s *server.Server
	if err == nil {
		s = server.New(opts)
		if opts.Account != nil {
			err = s.Begin(*opts.Account)
		}
	}
	if err != nil {
		_ = boot.Answer(boot.SocketFD, err)
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background(), listener) }()
	go func() { _ = s.ServeSudo(context.Background(), sudoers.(*net.UnixListener)) }() // lives as long; who asks hears nothing if it fails
	_ = boot.Answer(boot.SocketFD, nil)                                                // a server that is gone by now comes back
	_ = os.NewFile(boot.SocketFD, "boot").Close()
	return <-ended // this thread does nothing from now on: see server.BecomeInit
}

// listen makes a listener of its descriptor, which it closes.
func listen(f *os.File) (net.Listener, error) {
	defer f.Close()
	return net.FileListener(f)
}
