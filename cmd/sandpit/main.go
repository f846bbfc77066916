// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command sandpit is the user's program: the server, and the command line that
// drives one over its API.
//
// A file holds a command. Each parses, asks the Go client (package client) and
// prints. Package daemon is for those that start a server or look at the host
// (serve, up, doctor), and for where a server keeps its token; nothing else of
// the server is known here. What a command may touch of its process is in the
// app that it is made with.
package main

import "os"

// version is set by the linker: -ldflags "-X main.version=…".
var version = "dev"

func main() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, version: version}
	root := newRoot(a)
	os.Exit(a.report(root.Execute()))
}
