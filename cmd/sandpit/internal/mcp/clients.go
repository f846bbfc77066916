// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newClients(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "clients [flags]",
		Short: "List the clients that called since the server began",
		Long: `List the clients that called by MCP since the server began, who called last first: what they call themselves, by which token,
how many tools they were told of, and what they asked for last. With the scope admin those of the project are shown, with
server:admin all, else those of the caller's own token.`,
		Args: app.Takes(0, 0),
	}
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.SeenClients(c.Context())
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, all, func(s v1.SeenClient) string { return s.Name }, output.Columns[v1.SeenClient]{
			Head: []string{"CLIENT", "VERSION", "TOKEN", "PROJECT", "TOOLS", "CALLS", "LAST", "SEEN"},
			Row: func(s v1.SeenClient, now time.Time) []string {
				return []string{s.Name, s.Version, s.Actor, s.Project, fmt.Sprint(s.Listed), fmt.Sprint(s.Calls), strings.TrimSpace(s.LastMethod + " " + s.LastTool), output.Ago(now, &s.LastSeenAt)}
			},
			Called: func(s v1.SeenClient) string { return s.Name },
		})
	}
	return c
}
