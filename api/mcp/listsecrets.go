// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"

	"sandpit.dev/sandbox"
)

// secretShape is a secret as the tools show it: never its value.
type secretShape struct {
	Name      string   `json:"name"`
	Of        string   `json:"of"`              // project or sandbox
	Hosts     []string `json:"hosts,omitempty"` // it goes into requests to these; else it is a variable
	Header    string   `json:"header,omitempty"`
	UpdatedAt string   `json:"updated_at"`
}

// secretList is the structured answer of list_secrets.
type secretList struct {
	Secrets []secretShape `json:"secrets"`
}

func listSecrets() tool {
	return tool{
		name: "list_secrets", title: "List secrets by name", readOnly: true, idempotent: true,
		about: "List the secrets that hold for a sandbox, or without one those of your project: names, and to which hosts they are put into requests. Nothing gives a value, and no tool sets one: ask the user to.",
		params: []param{
			{name: "sandbox", kind: text, about: "Name or id of a sandbox. Left out: those of the project.", aliases: sandboxAliases()},
		},
		example: `{"sandbox": "my-project"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			c.ref = c.args.text("sandbox")
			if c.args.has("sandbox") && c.ref == "" {
				c.args.add("sandbox", "is empty; leave it out for those of the project")
			}
			if err := c.args.err(); err != nil {
				return nil, err
			}
			all, err := c.engine.Secrets(ctx, c.Caller, c.ref)
			if err != nil {
				return nil, err
			}
			of := " of the project"
			if c.ref != "" {
				of = " of sandbox " + c.ref
			}
			out := secretList{Secrets: make([]secretShape, 0, len(all))}
			ans := &answer{verdict: counted(len(all), "secret", "secrets") + of}
			for i := range all {
				sh := secretShapeOf(&all[i])
				out.Secrets = append(out.Secrets, sh)
				ans.lines = append(ans.lines, sh.line())
			}
			ans.structured = out
			return ans, nil
		},
	}
}

func secretShapeOf(s *sandbox.Secret) secretShape {
	out := secretShape{Name: s.Name, Of: "project", Hosts: s.Hosts, Header: s.Header, UpdatedAt: timeText(s.UpdatedAt)}
	if s.Sandbox != "" {
		out.Of = "sandbox"
	}
	return out
}

func (s *secretShape) line() string {
	line := s.Name + " · of the " + s.Of
	if len(s.Hosts) > 0 {
		return line + " · put into requests to " + named(s.Hosts) + "; in the sandbox it is a stand-in"
	}
	return line + " · a variable of commands; its value is masked in output"
}
