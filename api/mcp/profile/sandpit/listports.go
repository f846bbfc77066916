// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/api/mcp/toolset"
)

func listPorts() toolset.Tool {
	return toolset.Tool{
		Name: "list_ports", Title: "List ports", ReadOnly: true, Idempotent: true,
		About:   "List what listens in a sandbox: port, address, program. expose_port makes a link to one.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: at(func(ctx context.Context, c *toolset.Call, ref string) (*toolset.Answer, error) {
			ports, truncated, err := c.Engine.Ports(ctx, c.Caller, ref)
			if err != nil {
				return nil, err
			}
			ans := &toolset.Answer{Verdict: fmt.Sprintf("%s in sandbox %s", toolset.Counted(len(ports), "port is open", "ports are open"), ref)}
			if truncated {
				ans.Notes = append(ans.Notes, "there are more than could be looked at")
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
				ans.Sections = []toolset.Section{{Title: "ports", Body: b.String()}} // programs choose their names
			}
			return ans, nil
		}),
	}
}
