// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

func exposePort() tool {
	return tool{
		name: "expose_port", title: "Get a link to a port", openWorld: true,
		about: "Get an HTTP link to what a program in a sandbox serves on a port of its loopback, for the user's browser or for curl. Whoever has the link can use it until it expires.",
		params: []param{
			{name: "port", kind: integer, min: 1, max: agent.MaxPort, required: true, about: "TCP port, 1 to 65535."},
			paramSandbox(),
			{name: "expires_minutes", kind: number, min: 1, max: engine.MaxPreview.Minutes(), field: "expires_seconds", about: "Default 60.", aliases: []string{"expires", "ttl_minutes"}},
		},
		example: `{"port": 8000}`,
		run:     expose,
	}
}

func expose(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	port, life := int(a.number("port", 0)), a.number("expires_minutes", engine.DefaultPreview.Minutes())
	if err := a.err(); err != nil {
		return nil, err
	}
	if c.previews == nil || c.Address == nil {
		return nil, fault.New(fault.Unsupported, "this server makes no links to ports").
			WithRemedy(`run_command with {"command": "curl -s http://127.0.0.1:%d/"} shows what is served`, port)
	}
	ref, err := c.place(ctx, true)
	if err != nil {
		return nil, err
	}
	p, err := c.engine.CreatePreview(ctx, c.Caller, ref, port, time.Duration(life*float64(time.Minute)))
	if err != nil {
		return nil, err
	}
	with := "?sandpit_token=" + url.QueryEscape(c.previews.Token(p))
	address, byPath := c.previews.Addresses(c.Address, string(p.Sandbox), p.Port)
	out := &answer{verdict: fmt.Sprintf("port %d of sandbox %s:", port, ref), lines: []string{address + with}}
	if byPath != address {
		out.lines = append(out.lines, "for programs that cannot resolve that name: "+byPath+with)
	}
	out.lines = append(out.lines, "good until "+timeText(p.ExpiresAt)+" for whoever has it")
	if why := c.unheard(ctx, ref, port); why != "" {
		out.notes = append(out.notes, why)
	}
	return out, nil
}

// unheard says what is wrong where nothing answers on a port.
func (c *call) unheard(ctx context.Context, ref string, port int) string {
	ports, _, err := c.engine.Ports(ctx, c.Caller, ref)
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
