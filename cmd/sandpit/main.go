// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command sandpit is the user's program: the server, and the command line that
// drives one over its API.
//
// A file holds the commands of one noun; those that need Linux end in _linux.go. Each
// command parses, asks the Go client (package client) and prints. Package daemon is for
// those that start a server or look at the host (serve, up, doctor), and for where a
// server keeps its token; nothing else of the server is known here. What a command may
// touch of its process is in the app that it is made with.
package main

import (
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/term"
)

// version is set by the linker: -ldflags "-X main.version=…".
var version = "dev"

func main() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, version: version}
	root := newRoot(a)
	c, err := root.ExecuteC()
	a.choose(c) // also where the command line was refused before it ran
	os.Exit(a.report(err))
}

// app is what commands get of the process that they run in.
type app struct {
	stdin          *os.File
	stdout, stderr io.Writer
	getenv         func(string) string
	version        string
	server         string                 // that --server names; empty: none
	kept           atomic.Pointer[string] // the name of the kept server that was spoken to
	raw            atomic.Bool            // the terminal hands every key on
	json           bool                   // errors are for programs, too: -o json
}

// terminal gives the file behind w if a person looks at it.
func terminal(w any) (*os.File, bool) {
	f, ok := w.(*os.File)
	if !ok || f == nil || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}
