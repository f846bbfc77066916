// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"net/url"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
)

// daytonaPreviewLife is how long a link is good: at Daytona as long as the sandbox.
const daytonaPreviewLife = 24 * time.Hour

func daytonaPreview() tool {
	return tool{
		name: "preview_link", title: "Get a link to a port", openWorld: true,
		about: "Get a link to what a program in a sandbox serves by HTTP on a port. Whoever has it can use it for 24 hours.",
		params: []param{
			daytonaWords().which(),
			{name: "port", kind: nested, schema: `{"type":"number","description":"TCP port, 1 to 65535."}`, required: true, min: 1, max: agent.MaxPort, about: "TCP port, 1 to 65535."},
			{name: "description", kind: text, required: true, about: "Of the service, for you."},
			{name: "checkServer", kind: boolean, required: true, about: "Refuse if nothing listens on the port.", aliases: []string{"check_server"}},
		},
		example: `{"id": "an-id", "port": 8000, "description": "the app", "checkServer": true}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			a := c.args
			ref := daytonaWords().in(c)
			number, check := a.number("port", 0), a.bool("checkServer", false)
			port := int(number)
			if float64(port) != number {
				a.add("port", "%s is not a whole number", decimal(number))
			}
			_ = a.text("description") // nobody but the model reads it
			if err := a.err(); err != nil {
				return nil, err
			}
			if c.previews == nil || c.Address == nil {
				return nil, fault.New(fault.Unsupported, "this server makes no links to ports").
					WithRemedy("execute_command with curl -s http://127.0.0.1:%d/ shows what is served", port)
			}
			if check {
				if err := c.served(ctx, port); err != nil {
					return nil, err
				}
			}
			p, err := c.engine.CreatePreview(ctx, c.Caller, ref, port, daytonaPreviewLife)
			if err != nil {
				return nil, err
			}
			address, byPath := c.previews.Addresses(c.Address, string(p.Sandbox), p.Port)
			with := "?sandpit_token=" + url.QueryEscape(c.previews.Token(p))
			out := inText("Preview link generated: " + address + with)
			out.notes = append(out.notes, "good until "+timeText(p.ExpiresAt)+" for whoever has it")
			if byPath != address {
				out.notes = append(out.notes, "for programs that cannot resolve that name: "+byPath+with)
			}
			return out, nil
		},
	}
}

// served is an error where nothing listens on a port.
func (c *call) served(ctx context.Context, port int) error {
	ports, _, err := c.engine.Ports(ctx, c.Caller, c.ref)
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
