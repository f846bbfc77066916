// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command sandpit is the user's program: the server, and the command line that
// drives one over its API.
//
// A file holds the commands of one noun; those that need Linux end in _linux.go. Each
// command parses, asks the Go client (package client) and prints. Package daemon is for
// those that start a server or look at the host (serve, up, doctor), and for where a
// server keeps its token; nothing else of the server is known here. What a command may
// touch of its process is in the app that it is made with. What is no command is in the
// packages below internal: how things are printed, flags are read and servers are found.
package main

import (
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/place"
)

// version is set by the linker: -ldflags "-X main.version=…".
var version = "dev"

func main() {
	a := &app{Finder: place.Finder{Getenv: os.Getenv}, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, version: version}
	root := newRoot(a)
	c, err := root.ExecuteC()
	a.choose(c) // also where the command line was refused before it ran
	os.Exit(a.report(err))
}

// app is what commands get of the process that they run in.
type app struct {
	place.Finder
	stdin          *os.File
	stdout, stderr io.Writer
	version        string
	raw            atomic.Bool    // the terminal hands every key on
	command        *cobra.Command // that runs, or was refused
	json           bool           // errors are for programs, too: -o json
}

// client returns a client of the server to speak to.
func (a *app) client() (*client.Client, error) {
	p, err := a.Locate()
	if err != nil {
		return nil, err
	}
	return a.clientOf(p), nil
}

func (a *app) clientOf(p place.Server) *client.Client {
	return client.New(p.URL, p.Token, client.Options{UserAgent: "sandpit/" + a.version, Project: a.Getenv("SANDPIT_PROJECT"), ReuseFrames: true, Waiting: a.waiting})
}
