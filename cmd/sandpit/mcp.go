// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/internal/mcpbridge"
)

func newMCP(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Speak MCP on standard input and output, for clients that start a program",
		Long: `Speak MCP on standard input and output, for clients that start a program instead of opening a URL. What
is said goes to the server as it is; without a server this ends at once and says so on standard error.

Clients that can open a URL need none of this: see sandpit mcp config.`,
		Args: cobra.ArbitraryArgs,
	}
	verbose := c.Flags().Bool("verbose", false, "log to standard error")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return group(c, args)
		}
		p, err := a.locate()
		if err != nil {
			return err
		}
		log := slog.New(slog.DiscardHandler)
		if *verbose {
			log = slog.New(slog.NewTextHandler(a.stderr, nil))
		}
		ctx, stop := interruptible(c.Context())
		defer stop()
		return interrupted(ctx, mcpbridge.Run(ctx, a.stdin, a.stdout, mcpbridge.Options{URL: mcpURL(p), Token: p.token, Logger: log}))
	}
	c.AddCommand(newMCPConfig(a))
	return c
}

// mcpURL is where a server speaks MCP.
func mcpURL(p place) string {
	base := strings.TrimRight(p.url, "/")
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/api")
	return base + "/mcp"
}
