// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"

	"sandpit.dev/api/mcp/toolset"
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

func listSecrets() toolset.Tool {
	return toolset.Tool{
		Name: "list_secrets", Title: "List secrets by name", ReadOnly: true, Idempotent: true,
		About: "List the secrets that hold for a sandbox, or without one those of your project: names, and to which hosts they are put into requests. Nothing gives a value, and no tool sets one: ask the user to.",
		Params: []toolset.Param{
			{Name: "sandbox", Kind: toolset.Text, About: "Name or id of a sandbox. Left out: those of the project.", Aliases: sandboxAliases()},
		},
		Example: `{"sandbox": "my-project"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			c.Ref = c.Args.Text("sandbox")
			if c.Args.Has("sandbox") && c.Ref == "" {
				c.Args.Add("sandbox", "is empty; leave it out for those of the project")
			}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			all, err := c.Secrets.Secrets(ctx, c.Caller, c.Ref)
			if err != nil {
				return nil, err
			}
			of := " of the project"
			if c.Ref != "" {
				of = " of sandbox " + c.Ref
			}
			out := secretList{Secrets: make([]secretShape, 0, len(all))}
			ans := &toolset.Answer{Verdict: toolset.Counted(len(all), "secret", "secrets") + of}
			for i := range all {
				sh := secretShapeOf(&all[i])
				out.Secrets = append(out.Secrets, sh)
				ans.Lines = append(ans.Lines, sh.line())
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

func secretShapeOf(s *sandbox.Secret) secretShape {
	out := secretShape{Name: s.Name, Of: "project", Hosts: s.Hosts, Header: s.Header, UpdatedAt: toolset.TimeText(s.UpdatedAt)}
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
