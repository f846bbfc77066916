// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command sandpit is the user's program: the server, and the command line that
// drives one over its API.
//
// A file holds the commands of one noun; nouns with many commands are packages below
// internal. Each command parses, asks the Go client (package client) and prints. Package daemon is for
// those that start a server or look at the host (internal/server), and for where a
// server keeps its token; nothing else of the server is known here. What a command may
// touch of its process is in the app.App that it is made with. What is no command is in the
// packages below internal: how things are printed, flags are read and servers are found.
package main

import (
	"os"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/place"
)

// version is set by the linker: -ldflags "-X main.version=…".
var version = "dev"

func main() {
	a := &app.App{Finder: place.Finder{Getenv: os.Getenv}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version}
	root := newRoot(a)
	c, err := root.ExecuteC()
	a.Choose(c) // also where the command line was refused before it ran
	os.Exit(a.Report(err))
}
