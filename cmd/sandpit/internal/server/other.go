// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package server

import (
	"context"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/fault"
)

// Starter returns what refuses to start a server.
func Starter(a *app.App, _ *cobra.Command) func(context.Context) error {
	return func(context.Context) error {
		_, err := a.Located(place.Server{})
		return err
	}
}

// needsLinux is a command that this system has not: why says what it does, and what to do instead.
func needsLinux(name, short, why, instead string) *cobra.Command {
	return &cobra.Command{
		Use:                name + " [flags]",
		Short:              short + " (needs Linux)",
		Long:               "sandpit " + name + " needs Linux: " + why + ". Instead, " + instead + ".",
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(*cobra.Command, []string) error {
			return fault.New(fault.Unsupported, "sandpit %s needs Linux: %s", name, why).WithRemedy("%s", instead)
		},
	}
}

const elsewhere = "run it on the Linux machine that has the sandboxes, and sign in to that server from here with: sandpit login URL"

// NewServe returns the command that would run the server.
func NewServe(*app.App) *cobra.Command {
	return needsLinux("serve", "Run the server until it is interrupted", "sandboxes are made of what its kernel offers", elsewhere)
}

// NewUp returns the command that would start a server.
func NewUp(*app.App, creator) *cobra.Command {
	return needsLinux("up", "Start a server in the background, and say how to connect to it", "sandboxes are made of what its kernel offers", elsewhere)
}

// NewDown returns the command that would end the server.
func NewDown(*app.App) *cobra.Command {
	return needsLinux("down", "End this machine's server; all data stays", "no server runs on this machine", elsewhere)
}

// NewRestore returns the command that would make a data directory of a backup.
func NewRestore(*app.App) *cobra.Command {
	return needsLinux("restore", "Make a data directory of a backup", "it makes a server's data directory", elsewhere)
}

// NewDoctor returns the command that would look at the host; a server is asked by --server.
func NewDoctor(a *app.App) *cobra.Command {
	c := needsLinux("doctor", "Say what this host can and cannot do, and how to mend it", "it looks at the host that the sandboxes run on",
		"ask a server what it finds of its own host, with: sandpit doctor --server NAME")
	out := output.FormatFlag(c)
	refuse := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if a.Server == "" {
			return refuse(c, args)
		}
		return doctorOf(c.Context(), a, *out)
	}
	return c
}

// NewBench returns the command that would measure a server.
func NewBench(*app.App) *cobra.Command {
	return needsLinux("bench", "Measure sandpit on this machine, beside what you would pick instead", "it measures a server of its own", elsewhere)
}
