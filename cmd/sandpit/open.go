// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/browser"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newOpen(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "open [flags] SANDBOX PORT",
		Short: "Show what a port serves over HTTP in this machine's browser",
		Long: `Make a link to what a port in a sandbox serves over HTTP, and open it in this machine's browser: the program in
BROWSER, or what the system opens pages with. Where there is none, the link is printed. Whoever has the link can open it until it
expires; other users of this machine may see it among the processes for a moment.`,
		Example: `  sandpit exec --detach web -- python3 -m http.server 8000
  sandpit open web 8000`,
		Args:              app.Takes(2, 2),
		ValidArgsFunction: a.CompletePort,
	}
	var expires flags.Period
	c.Flags().Var(&expires, "expires", "how long the link is good, at most 30d (default 1h)")
	byPath := c.Flags().Bool("path", false, "open the form by path, where the preview's own host name cannot be reached")
	c.RunE = func(c *cobra.Command, args []string) error {
		p, cl, err := preview(a, c, args[0], args[1], &expires)
		if err != nil {
			return err
		}
		warnSilent(c.Context(), a, cl, args[0], p.Port)
		link := p.URL
		if *byPath {
			link = p.PathURL
		}
		err = browser.Open(runtime.GOOS, a.Getenv, link)
		switch {
		case err == nil:
			a.Warn("port %d of %s is open in the browser", p.Port, args[0])
			return nil
		case errors.Is(err, browser.ErrNone):
			a.Warn("there is no browser here; the link is good until %s", p.ExpiresAt.Local().Format("15:04"))
		default:
			a.Warn("the browser does not open it: %v", err)
		}
		_, err = fmt.Fprintln(a.Stdout, output.Printable(link))
		return err
	}
	return c
}
