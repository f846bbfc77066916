// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	"github.com/spf13/cobra"
)

func newPorts(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "ports [flags] SANDBOX",
		Short: "List what listens in a sandbox",
		Long: `List what listens in a sandbox: the port, the address that it is bound to, and the process. The URL is
private; "sandpit preview" makes a link that others can open.`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeFirst,
	}
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		l, err := cl.Ports(c.Context(), args[0])
		if err != nil {
			return err
		}
		if *out == asJSON {
			return writeJSON(a.stdout, l)
		}
		rows := make([][]string, 0, len(l.Items))
		for _, p := range l.Items {
			pid := ""
			if p.PID != 0 {
				pid = strconv.Itoa(p.PID)
			}
			rows = append(rows, []string{strconv.Itoa(p.Port), p.Protocol, p.Address, pid, p.Command, p.User, p.URL})
		}
		if l.Truncated {
			a.warn("there is more than could be listed")
		}
		return table(a.stdout, []string{"PORT", "PROTOCOL", "ADDRESS", "PID", "COMMAND", "USER", "URL"}, rows)
	}
	return c
}

// portOf reads a port.
func portOf(c *cobra.Command, s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, misuse(c, "%q is not a valid port, which is a number from 1 to 65535", s)
	}
	return n, nil
}
