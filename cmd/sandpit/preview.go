// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
)

func newPreview(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "preview [flags] SANDBOX PORT",
		Short: "Make a link to what a port serves over HTTP",
		Long: `Make a link to what a port in a sandbox serves over HTTP. Whoever has the link can open it until it
expires or the sandbox is deleted. Nothing needs to listen there yet.`,
		Example: `  sandpit exec --detach web -- python3 -m http.server 8000
  sandpit preview web 8000 --expires 1d`,
		Args:              takes(2, 2),
		ValidArgsFunction: a.completeFirst,
	}
	var expires period
	c.Flags().Var(&expires, "expires", "how long it is good, at most 30d (default 1h)")
	byPath := c.Flags().Bool("path", false, "print the form by path, for clients that cannot reach the preview's own host name")
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		port, err := portOf(c, args[1])
		if err != nil {
			return err
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		p, err := cl.Preview(c.Context(), args[0], v1.CreatePreview{Port: port, ExpiresSeconds: expires.seconds()})
		if err != nil {
			return err
		}
		switch {
		case *out == asJSON:
			return writeJSON(a.stdout, p)
		case *byPath:
			_, err = fmt.Fprintln(a.stdout, p.PathURL)
		default:
			_, err = fmt.Fprintln(a.stdout, p.URL)
		}
		return err
	}
	return c
}
