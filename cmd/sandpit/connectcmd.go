// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/fault"
	"sandpit.dev/internal/mcpbridge"
)

func newConnect(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "connect [flags] URL",
		Short: "Speak MCP on standard input and output with a server elsewhere",
		Long: `Speak MCP on standard input and output with a server elsewhere, for clients that start a program. URL is the
server's ("https://box.example.org"), or that of its MCP address. The token comes from SANDPIT_TOKEN, from
another variable, or from a file: it is never an argument, which others on the machine could read.

It works with any server that speaks Streamable HTTP; one without tokens needs --no-token.`,
		Args: takes(1, 1),
	}
	f := c.Flags()
	variable := f.String("token-env", "SANDPIT_TOKEN", "environment `variable` that holds the token")
	file := f.String("token-file", "", "`file` that holds the token")
	none := f.Bool("no-token", false, "send no token")
	verbose := f.Bool("verbose", false, "log to standard error")
	c.RunE = func(c *cobra.Command, args []string) error {
		to, err := remoteMCP(args[0])
		if err != nil {
			return misuse(c, "%s", err)
		}
		token := ""
		switch {
		case *none && (*file != "" || f.Changed("token-env")):
			return misuse(c, "--no-token goes with no other way to a token")
		case *none:
		case *file != "" && f.Changed("token-env"):
			return misuse(c, "--token-env and --token-file exclude each other")
		case *file != "":
			b, err := os.ReadFile(*file)
			if err != nil {
				return fault.Wrap(fault.Unauthenticated, err, "the token cannot be read").WithRemedy("name the file that holds it with --token-file")
			}
			token = strings.TrimSpace(string(b))
		default:
			token = strings.TrimSpace(a.getenv(*variable))
		}
		if token == "" && !*none {
			return fault.New(fault.Unauthenticated, "there is no token for %s", to).
				WithRemedy("set %s, or name a file with --token-file; sandpit token create, on the server, makes a token", *variable)
		}
		if token != "" && to.Scheme == "http" && !loopback(to.Hostname()) {
			fmt.Fprintf(a.stderr, "the token goes to %s without encryption: whoever is on the way can read it\n", to.Host)
		}
		ctx, stop := interruptible(c.Context())
		defer stop()
		return interrupted(ctx, a.bridge(ctx, mcpbridge.Options{
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

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
