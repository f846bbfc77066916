// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/place"
)

// App is what commands get of the process that they run in.
type App struct {
	place.Finder
	Stdin          *os.File
	Stdout, Stderr io.Writer
	Version        string
	Raw            atomic.Bool    // the terminal hands every key on
	Command        *cobra.Command // that runs, or was refused
	json           bool           // errors are for programs, too: -o json
}

// Client returns a client of the server to speak to.
func (a *App) Client() (*client.Client, error) {
	p, err := a.Locate()
	if err != nil {
		return nil, err
	}
	return a.ClientOf(p), nil
}

// ClientOf returns a client of a server.
func (a *App) ClientOf(p place.Server) *client.Client {
	return client.New(p.URL, p.Token, client.Options{UserAgent: "sandpit/" + a.Version, Project: a.Getenv("SANDPIT_PROJECT"), ReuseFrames: true, Waiting: a.waiting})
}
