// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func exposePort() toolset.Tool {
	return toolset.Tool{
		Name: "expose_port", Title: "Get a link to a port", OpenWorld: true,
		About: "Get an HTTP link to what a program in a sandbox serves on a port of its loopback, for the user's browser or for curl. Whoever has the link can use it until it expires.",
		Params: []toolset.Param{
			{Name: "port", Kind: toolset.Integer, Min: 1, Max: sandbox.MaxPort, Required: true, About: "TCP port, 1 to 65535."},
			paramSandbox(),
			{Name: "expires_minutes", Kind: toolset.Number, Min: 1, Max: ports.MaxPreview.Minutes(), Field: "expires_seconds", About: "Default 60.", Aliases: []string{"expires", "ttl_minutes"}},
		},
		Example: `{"port": 8000}`,
		Run:     expose,
	}
}

func expose(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	port, life := int(a.Number("port", 0)), a.Number("expires_minutes", ports.DefaultPreview.Minutes())
	if err := a.Err(); err != nil {
		return nil, err
	}
	if c.Previews == nil || c.Address == nil {
		return nil, fault.New(fault.Unsupported, "this server makes no links to ports").
			WithRemedy(`run_command with {"command": "curl -s http://127.0.0.1:%d/"} shows what is served`, port)
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	p, err := c.Ports.CreatePreview(ctx, c.Caller, ref, port, time.Duration(life*float64(time.Minute)))
	if err != nil {
		return nil, err
	}
	with := "?sandpit_token=" + url.QueryEscape(c.Previews.Token(p))
	address, byPath := c.Previews.Addresses(c.Address, string(p.Sandbox), p.Port)
	out := &toolset.Answer{Verdict: fmt.Sprintf("port %d of sandbox %s:", port, ref), Lines: []string{address + with}}
	if byPath != address {
		out.Lines = append(out.Lines, "for programs that cannot resolve that name: "+byPath+with)
	}
	out.Lines = append(out.Lines, "good until "+toolset.TimeText(p.ExpiresAt)+" for whoever has it")
	if why := unheard(ctx, c, ref, port); why != "" {
		out.Notes = append(out.Notes, why)
	}
	return out, nil
}

// unheard says what is wrong where nothing answers on a port.
func unheard(ctx context.Context, c *toolset.Call, ref string, port int) string {
	ports, _, err := c.Ports.Ports(ctx, c.Caller, ref)
	if err != nil {
		return "" // the link is good for when there is something
	}
	var open []int
	for _, p := range ports {
		if p.Protocol != "tcp" {
			continue
		}
		if p.Port == port {
			return ""
		}
		open = append(open, p.Port)
	}
	if len(open) == 0 {
		return fmt.Sprintf("nothing listens on port %d yet, and on no other: start the server with run_command and {\"background\": true}", port)
	}
	slices.Sort(open)
	return fmt.Sprintf("nothing listens on port %d yet; there is something on %v", port, slices.Compact(open))
}

func listPorts() toolset.Tool {
	return toolset.Tool{
		Name: "list_ports", Title: "List ports", ReadOnly: true, Idempotent: true,
		About:   "List what listens in a sandbox: port, address, program. expose_port makes a link to one.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: at(func(ctx context.Context, c *toolset.Call, ref string) (*toolset.Answer, error) {
			ports, truncated, err := c.Ports.Ports(ctx, c.Caller, ref)
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
