// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"strings"
)

func listPorts() tool {
	return tool{
		name: "list_ports", title: "List ports", readOnly: true, idempotent: true,
		about:   "List what listens in a sandbox: port, address, program. expose_port makes a link to one.",
		params:  []param{paramSandbox()},
		example: `{"sandbox": "my-project"}`,
		run: at(func(ctx context.Context, c *call, ref string) (*answer, error) {
			ports, truncated, err := c.engine.Ports(ctx, c.Caller, ref)
			if err != nil {
				return nil, err
			}
			ans := &answer{verdict: fmt.Sprintf("%s in sandbox %s", counted(len(ports), "port is open", "ports are open"), ref)}
			if truncated {
				ans.notes = append(ans.notes, "there are more than could be looked at")
			}
			var b strings.Builder
			for _, p := range ports {
				fmt.Fprintf(&b, "%d/%s on %s", p.Port, p.Protocol, p.Address)
				if p.PID > 0 {
					fmt.Fprintf(&b, " · pid %d (%s) · user %s", p.PID, oneLineOf(p.Command), oneLineOf(p.User))
				}
				b.WriteByte('\n')
			}
			if b.Len() > 0 {
				ans.sections = []section{{"ports", b.String()}} // programs choose their names
			}
			return ans, nil
		}),
	}
}
