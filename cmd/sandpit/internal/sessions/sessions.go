// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sessions has the commands about people who use the server by a browser.
package sessions

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/browser"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// New returns the group of commands.
func New(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "session",
		Short: "List and end the sessions of people who are signed in",
		Long: `List and end the sessions of people who are signed in to the console. A session is bound to the token that it was exchanged for:
it has that token's rights, and ends with it. With the scope admin those of the project are shown, else those of the caller's own token.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newLs(a), newRm(a))
	return c
}

func newLs(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List sessions", Args: app.Takes(0, 0)}
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.Sessions(c.Context())
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, all, func(s v1.Session) string { return s.ID }, output.Columns[v1.Session]{
			Head: []string{"ID", "PROJECT", "TOKEN", "FROM", "SIGNED IN", "LAST USED", "ENDS", "BROWSER"},
			Row: func(s v1.Session, now time.Time) []string {
				return []string{s.ID, s.Project, s.Actor, s.Address, output.Ago(now, &s.CreatedAt), output.Ago(now, &s.LastUsedAt), output.Ago(now, &s.ExpiresAt), s.Agent}
			},
			Called: func(s v1.Session) string { return s.ID },
		})
	}
	return c
}

func newRm(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "rm SESSION...", Aliases: []string{"end"}, Short: "End sessions, by their ids, with what is open by them", Args: app.Takes(1, -1)}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		for _, id := range args {
			if err := cl.EndSession(c.Context(), id); err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, output.Printable(id))
		}
		return nil
	}
	return c
}

// NewConsole returns the command that opens the console.
func NewConsole(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "console [flags]",
		Short: "Open the server's console in this machine's browser, signed in",
		Long: `Open the server's console in this machine's browser: the program in BROWSER, or what the system opens pages with. Where there is
none, its address is printed. The address has a code that signs in once, within a minute, with the rights of this command's token.
Browsers keep a session over https, and over http at localhost.`,
		Args: app.Takes(0, 0),
	}
	only := c.Flags().Bool("print", false, "print the address, and open nothing")
	c.RunE = func(c *cobra.Command, _ []string) error {
		server, err := a.Locate()
		if err != nil {
			return err
		}
		code, err := a.ClientOf(server).CreateSessionCode(c.Context())
		if err != nil {
			return err
		}
		address := strings.TrimSuffix(strings.TrimRight(server.URL, "/"), "/v1") + "/console/#code=" + code.Code
		if !*only {
			err = browser.Open(runtime.GOOS, a.Getenv, address)
			switch {
			case err == nil:
				a.Warn("the console is open in the browser")
				return nil
			case errors.Is(err, browser.ErrNone):
				a.Warn("there is no browser here; this address signs in once, within a minute")
			default:
				a.Warn("the browser does not open it: %v", err)
			}
		}
		_, err = fmt.Fprintln(a.Stdout, output.Printable(address))
		return err
	}
	return c
}
