// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/fault"
	"sandpit.dev/internal/mcpbridge"
)

// StartBound is how long sandpit mcp waits for the server that it starts. Clients
// wait for their programs' first answer no longer than that.
const StartBound = 25 * time.Second

// New returns the command that speaks MCP. Starter adds the flags of a server to it, and returns what starts one.
func New(a *app.App, starter func(*app.App, *cobra.Command) func(context.Context) error) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Speak MCP on standard input and output, for clients that start a program",
		Long: `Speak MCP on standard input and output, for clients that start a program instead of opening a URL. What
is said goes to this machine's server as it is. Where none runs, one is started in the background, as
"sandpit up" does; it stays when this ends, and "sandpit down" ends it. Where another server is named (--server,
SANDPIT_URL, sandpit server use), that one is spoken to and none is started; "sandpit connect" takes its URL.
One that nobody answers for is waited for a few seconds, so that a restart is not noticed; then the client gets
an error that says why.

Clients that can open a URL need none of this: see sandpit mcp config.`,
		Args: cobra.ArbitraryArgs,
	}
	start := starter(a, c)
	verbose := c.Flags().Bool("verbose", false, "log to standard error")
	profile := c.Flags().String("profile", "", "the set of tools (default: the server's, or the token's)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return app.Group(c, args)
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		p, err := serverForMCP(ctx, a, start)
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		remedy := "start it with: sandpit up"
		switch p.By {
		case place.ByFlag:
			remedy = "see that it runs and that --server is right"
		case place.ByVariable:
			remedy = "see that it runs and that SANDPIT_URL is right, or unset SANDPIT_URL to use this machine's own server"
		case place.ByList:
			remedy = "see that it runs, or use another: sandpit server ls"
		}
		return interrupt.Ended(ctx, Bridge(ctx, a, mcpbridge.Options{
			URL: URL(p, *profile), Token: p.Token, Remedy: remedy,
			Find: func() (string, string, bool) {
				p, err := a.Locate() // where it is after a restart
				return URL(p, *profile), p.Token, err == nil
			},
		}, *verbose))
	}
	c.AddCommand(newConfig(a), newClients(a))
	return c
}

// serverForMCP finds the server to speak to, and has one started on this machine where
// no other is named.
func serverForMCP(ctx context.Context, a *app.App, start func(context.Context) error) (place.Server, error) {
	p, err := a.Chosen()
	if err != nil {
		return place.Server{}, err
	}
	if p.By == place.ByNobody {
		if err := start(ctx); err != nil {
			return place.Server{}, err
		}
	}
	return a.Locate()
}

// Bridge passes messages between standard input and output and a server.
func Bridge(ctx context.Context, a *app.App, o mcpbridge.Options, verbose bool) error {
	if verbose {
		o.Logger = slog.New(slog.NewTextHandler(a.Stderr, nil))
	}
	return mcpbridge.Run(ctx, a.Stdin, a.Stdout, o)
}

// URL is where a server speaks MCP, with a set of tools; "" is the default.
func URL(p place.Server, profile string) string {
	base := strings.TrimRight(p.URL, "/")
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/api") + "/mcp"
	if profile == "" {
		return base
	}
	return base + "/" + url.PathEscape(profile)
}

// NewConnect returns the command that speaks MCP with a server elsewhere.
func NewConnect(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "connect [flags] URL",
		Short: "Speak MCP on standard input and output with a server elsewhere",
		Long: `Speak MCP on standard input and output with a server elsewhere, for clients that start a program. URL is the
server's ("https://box.example.org"), or that of its MCP address. The token comes from SANDPIT_TOKEN, from
another variable, or from a file: it is never an argument, which others on the machine could read.

It works with any server that speaks Streamable HTTP; one without tokens needs --no-token.`,
		Args: app.Takes(1, 1),
	}
	f := c.Flags()
	variable := f.String("token-env", "SANDPIT_TOKEN", "environment `variable` that holds the token")
	file := f.String("token-file", "", "`file` that holds the token")
	none := f.Bool("no-token", false, "send no token")
	verbose := f.Bool("verbose", false, "log to standard error")
	c.RunE = func(c *cobra.Command, args []string) error {
		to, err := remoteMCP(args[0])
		if err != nil {
			return exit.Misuse(c, "%s", err)
		}
		token := ""
		switch {
		case *none && (*file != "" || f.Changed("token-env")):
			return exit.Misuse(c, "--no-token goes with no other way to a token")
		case *none:
		case *file != "" && f.Changed("token-env"):
			return exit.Misuse(c, "--token-env and --token-file exclude each other")
		case *file != "":
			b, err := os.ReadFile(*file)
			if err != nil {
				return fault.Wrap(fault.Unauthenticated, err, "the token cannot be read").WithRemedy("name the file that holds it with --token-file")
			}
			token = strings.TrimSpace(string(b))
		default:
			token = strings.TrimSpace(a.Getenv(*variable))
		}
		if token == "" && !*none {
			return fault.New(fault.Unauthenticated, "there is no token for %s", to).
				WithRemedy("set %s, or name a file with --token-file; sandpit token create, on the server, makes a token", *variable)
		}
		if token != "" && to.Scheme == "http" && !place.Loopback(to.Hostname()) {
			fmt.Fprintf(a.Stderr, "the token goes to %s without encryption: whoever is on the way can read it\n", to.Host)
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		return interrupt.Ended(ctx, Bridge(ctx, a, mcpbridge.Options{
			URL: to.String(), Token: token, Remedy: "see that it runs there, and that the address is right",
		}, *verbose))
	}
	return c
}

// remoteMCP is the MCP address that a person means.
func remoteMCP(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is not an http or https URL", text)
	case u.User != nil:
		return nil, fmt.Errorf("the URL has a user in it; a token comes by --token-env or --token-file")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	return u, nil
}
