// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/network/ask"
)

func requestNetwork() toolset.Tool {
	return toolset.Tool{
		Name: "request_network", Title: "Ask for a network", Idempotent: true,
		About: "Ask that a sandbox may reach hosts, as to install packages. What the operator's rules allow holds at once; else the answer has the line that the user types to grant it.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "allow", Kind: toolset.Text, Required: true, Field: "allow_domains", About: "Presets (python, node, debian, github, huggingface) and exact host names, with commas.", Aliases: []string{"allow_domains", "domains", "hosts", "presets"}},
			{Name: "reason", Kind: toolset.Text, About: "Why, for the user.", Aliases: []string{"why"}},
		},
		Example: `{"allow": "python"}`,
		Run:     askForNetwork,
	}
}

func askForNetwork(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	var presets, domains []string
	for one := range strings.SplitSeq(c.Args.Text("allow"), ",") {
		switch one = strings.TrimSpace(one); {
		case one == "":
		case strings.Contains(one, "."):
			domains = append(domains, one)
		default:
			presets = append(presets, one)
		}
	}
	why := c.Args.Text("reason")
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	r, state, err := c.Requests.RequestNetwork(ctx, c.Caller, ref, presets, domains, why)
	if err != nil {
		return nil, err
	}
	out := requestShape{Sandbox: r.Ref, State: string(state), Allow: r.Allow()}
	ans := &toolset.Answer{}
	what := named(r.Allow())
	switch state {
	case ask.Allowed:
		ans.Verdict = "sandbox " + r.Ref + " may reach " + what + " already"
	case ask.Granted:
		ans.Verdict = "granted by the operator's rule: sandbox " + r.Ref + " may reach " + what + " now"
	default:
		out.ID, out.Line, out.ExpiresAt = r.ID, "sandpit network grant "+r.ID, toolset.TimeText(r.Until)
		ans.Verdict = "not granted yet: the user has to allow sandbox " + r.Ref + " to reach " + what
		ans.Lines = []string{
			"the user types: " + out.Line,
			"next: show the user that line, and say why; try again when they have typed it. It is kept until " + out.ExpiresAt,
		}
	}
	for _, d := range r.Names {
		out.Names = append(out.Names, d.Domain)
	}
	if len(out.Names) > 0 {
		ans.Lines = append(ans.Lines, "the presets stand for "+named(out.Names))
	}
	ans.Structured = out
	return ans, nil
}

// requestShape is the structured answer.
type requestShape struct {
	Sandbox   string   `json:"sandbox"`
	State     string   `json:"state"` // pending, granted, or allowed: already
	Allow     []string `json:"allow"`
	Names     []string `json:"preset_names,omitempty"`
	ID        string   `json:"request_id,omitempty"`
	Line      string   `json:"user_types,omitempty"`
	ExpiresAt string   `json:"expires_at,omitempty"`
}
