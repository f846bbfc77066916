// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/internal/mcpbridge"
)

// mcpStartBound is how long sandpit mcp waits for the server that it starts. Clients
// wait for their programs' first answer no longer than that.
const mcpStartBound = 25 * time.Second

func newMCP(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Speak MCP on standard input and output, for clients that start a program",
		Long: `Speak MCP on standard input and output, for clients that start a program instead of opening a URL. What
is said goes to this machine's server as it is. Where none runs, one is started in the background, as
"sandpit up" does; it stays when this ends, and "sandpit down" ends it. SANDPIT_URL and SANDPIT_TOKEN name
another server, which has to run; so does "sandpit connect". One that nobody answers for is waited for a few
seconds, so that a restart is not noticed; then the client gets an error that says why.

Clients that can open a URL need none of this: see sandpit mcp config.`,
		Args: cobra.ArbitraryArgs,
	}
	flags := addServerFlags(c)
	verbose := c.Flags().Bool("verbose", false, "log to standard error")
	profile := c.Flags().String("profile", "", "the set of tools (default: the server's, or the token's)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return group(c, args)
		}
		ctx, stop := interruptible(c.Context())
		defer stop()
		p, err := a.serverForMCP(ctx, flags)
		if err != nil {
			return interrupted(ctx, err)
		}
		remedy := "start it with: sandpit up"
		if a.getenv("SANDPIT_URL") != "" {
			remedy = "see that it runs and that SANDPIT_URL is right, or unset SANDPIT_URL to use this machine's own server"
		}
		return interrupted(ctx, a.bridge(ctx, mcpbridge.Options{
			URL: mcpURL(p, *profile), Token: p.token, Remedy: remedy,
			Find: func() (string, string, bool) {
				p, err := a.locate() // where it is after a restart
				return mcpURL(p, *profile), p.token, err == nil
			},
		}, *verbose))
	}
	c.AddCommand(newMCPConfig(a))
	return c
}

// serverForMCP finds the server to speak to, and starts one on this machine where
// there is none and no other is named.
func (a *app) serverForMCP(ctx context.Context, flags *serverFlags) (place, error) {
	if a.getenv("SANDPIT_URL") != "" {
		return a.locate()
	}
	cfg, err := flags.settings(a.getenv)
	if err != nil {
		return place{}, err
	}
	if _, _, err := a.ensureServer(ctx, cfg, flags, mcpStartBound); err != nil {
		return place{}, err
	}
	return a.locate()
}

// bridge passes messages between standard input and output and a server.
func (a *app) bridge(ctx context.Context, o mcpbridge.Options, verbose bool) error {
	if verbose {
		o.Logger = slog.New(slog.NewTextHandler(a.stderr, nil))
	}
	return mcpbridge.Run(ctx, a.stdin, a.stdout, o)
}

// mcpURL is where a server speaks MCP, with a set of tools; "" is the default.
func mcpURL(p place, profile string) string {
	base := strings.TrimRight(p.url, "/")
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/api") + "/mcp"
	if profile == "" {
		return base
	}
	return base + "/" + url.PathEscape(profile)
}
