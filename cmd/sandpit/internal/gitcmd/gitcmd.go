// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package gitcmd has the commands about repositories in sandboxes, but for clone.
package gitcmd

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// App is what the commands need of the program.
type App struct {
	Client func() (*client.Client, error)
	Out    io.Writer
	Takes  func(least, most int) cobra.PositionalArgs
	First  func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) // completes the sandbox
	Secret func(ctx context.Context, name, variable, file string) (string, error)
}

// New returns the commands.
func New(a App) []*cobra.Command {
	all := []*cobra.Command{
		a.init(), a.status(), a.log(), a.add(), a.commit(), a.push(), a.pull(), a.branch(), a.checkout(), a.reset(), a.restore(), a.remote(), a.config(),
	}
	for _, c := range all {
		c.ValidArgsFunction = a.First
	}
	return all
}

// where adds the flags that say where git runs.
func where(c *cobra.Command) *v1.GitAt {
	at := new(v1.GitAt)
	c.Flags().StringVarP(&at.Path, "dir", "C", "", "the repository's directory, below /workspace if it is relative")
	c.Flags().StringVar(&at.AsUser, "as-user", "", "an account of the sandbox, a name or a number (default its own user)")
	return at
}

// asked adds the flags that say who asks a server, and returns what reads them.
func (a App) asked(c *cobra.Command) func(context.Context) (v1.GitLogin, error) {
	var username, file, ca string
	f := c.Flags()
	f.StringVar(&username, "username", "", "for a server that asks who it is")
	f.StringVar(&file, "password-file", "", "read the password or token from this file; - is standard input")
	f.StringVar(&ca, "ca", "", "a file with authorities for the server's certificate, in PEM")
	insecure := f.Bool("insecure-tls", false, "take any certificate")
	return func(ctx context.Context) (v1.GitLogin, error) {
		l := v1.GitLogin{InsecureTLS: *insecure}
		if username != "" {
			l.Username = &username
		}
		if ca != "" {
			text, err := os.ReadFile(ca)
			if err != nil {
				return l, fault.Wrap(fault.NotFound, err, "--ca: %s cannot be read", ca)
			}
			l.CA = string(text)
		}
		if file != "" {
			if file == "-" {
				file = ""
			} else if _, err := os.Stat(file); err != nil {
				return l, fault.Wrap(fault.NotFound, err, "%s cannot be read", file)
			}
			password, err := a.Secret(ctx, "--password-file", "", file)
			if err != nil {
				return l, err
			}
			l.Password = &password
		}
		return l, nil
	}
}

// run runs a command with a client, until it is interrupted.
func (a App) run(c *cobra.Command, do func(context.Context, *client.Client) error) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context())
	defer stop()
	if err := do(ctx, cl); err != nil {
		return interrupt.Ended(ctx, err)
	}
	return nil
}

// arg returns an argument that may be left out.
func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// short is a commit as a person reads it.
func short(commit string) string { return commit[:min(12, len(commit))] }

func line(s string) string { return output.Printable(s) }
