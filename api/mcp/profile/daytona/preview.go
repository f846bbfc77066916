// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"net/url"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// previewLife is how long a link is good: at Daytona as long as the sandbox.
const previewLife = 24 * time.Hour

func preview() toolset.Tool {
	return toolset.Tool{
		Name: "preview_link", Title: "Get a link to a port", OpenWorld: true,
		About: "Get a link to what a program in a sandbox serves by HTTP on a port. Whoever has it can use it for 24 hours.",
		Params: []toolset.Param{
			words().Which(),
			{Name: "port", Kind: toolset.Nested, Schema: `{"type":"number","description":"TCP port, 1 to 65535."}`, Required: true, Min: 1, Max: sandbox.MaxPort, About: "TCP port, 1 to 65535."},
			{Name: "description", Kind: toolset.Text, Required: true, About: "Of the service, for you."},
			{Name: "checkServer", Kind: toolset.Boolean, Required: true, About: "Refuse if nothing listens on the port.", Aliases: []string{"check_server"}},
		},
		Example: `{"id": "an-id", "port": 8000, "description": "the app", "checkServer": true}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			a := c.Args
			ref := words().In(c)
			number, check := a.Number("port", 0), a.Bool("checkServer", false)
			port := int(number)
			if float64(port) != number {
				a.Add("port", "%s is not a whole number", toolset.Decimal(number))
			}
			_ = a.Text("description") // nobody but the model reads it
			if err := a.Err(); err != nil {
				return nil, err
			}
			if c.Previews == nil || c.Address == nil {
				return nil, fault.New(fault.Unsupported, "this server makes no links to ports").
					WithRemedy("execute_command with curl -s http://127.0.0.1:%d/ shows what is served", port)
			}
			if check {
				if err := served(ctx, c, port); err != nil {
					return nil, err
				}
			}
			p, err := c.Ports.CreatePreview(ctx, c.Caller, ref, port, previewLife)
			if err != nil {
				return nil, err
			}
			address, byPath := c.Previews.Addresses(c.Address, string(p.Sandbox), p.Port)
			with := "?sandpit_token=" + url.QueryEscape(c.Previews.Token(p))
			out := toolset.TextAnswer("Preview link generated: " + address + with)
			out.Notes = append(out.Notes, "good until "+toolset.TimeText(p.ExpiresAt)+" for whoever has it")
			if byPath != address {
				out.Notes = append(out.Notes, "for programs that cannot resolve that name: "+byPath+with)
			}
			return out, nil
		},
	}
}

// served is an error where nothing listens on a port.
func served(ctx context.Context, c *toolset.Call, port int) error {
	ports, _, err := c.Ports.Ports(ctx, c.Caller, c.Ref)
	if err != nil {
		return err
	}
	for _, p := range ports {
		if p.Protocol == "tcp" && p.Port == port {
			return nil
		}
	}
	return fault.New(fault.State, "no server detected on port %d", port).
		WithRemedy("start it by execute_command, with & and its output in a file, or set checkServer to false")
}
