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
		About: "Ask that a sandbox may reach hosts, as to install packages. What the operator's rules allow holds at once; else the user is asked, by your client or by a line that the answer has for them to type.",
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
	// The client calls again with what was said to a form, where it was not waited for.
	said, form, again := c.Said(networkQuestion)
	if again {
		r, state, err := c.Requests.AnswerNetwork(ctx, c.Caller, form, ref, presets, domains, networkChoice(said))
		if err != nil {
			return nil, err
		}
		if state != "" {
			return networkAnswer(r, state, true), nil
		}
	}
	r, state, err := c.Requests.RequestNetwork(ctx, c.Caller, ref, presets, domains, why)
	if err != nil {
		return nil, err
	}
	if state != ask.Pending || again {
		return networkAnswer(r, state, false), nil
	}
	choice, form, first := askPerson(ctx, c, r)
	if first != nil {
		return first, nil
	}
	if form == "" {
		return networkAnswer(r, state, false), nil
	}
	answered, became, err := c.Requests.AnswerNetwork(ctx, c.Caller, form, ref, presets, domains, choice)
	if err != nil {
		return nil, err
	}
	if became == "" { // another call of the same asked meanwhile, and its form counts
		answered, became = r, state
	}
	return networkAnswer(answered, became, true), nil
}

// networkAnswer says what became of a request; shown: the client's person was asked.
func networkAnswer(r ask.Request, state ask.State, shown bool) *toolset.Answer {
	out := requestShape{Sandbox: r.Ref, State: string(state), Allow: r.Allow()}
	ans := &toolset.Answer{}
	what := named(r.Allow())
	switch {
	case state == ask.Allowed:
		ans.Verdict = "sandbox " + r.Ref + " may reach " + what + " already"
	case state == ask.Granted && shown:
		ans.Verdict = "granted by the user: sandbox " + r.Ref + " may reach " + what + " now"
	case state == ask.Granted:
		ans.Verdict = "granted by the operator's rule: sandbox " + r.Ref + " may reach " + what + " now"
	case state == ask.Denied:
		ans.Verdict = "denied by the user: sandbox " + r.Ref + " may not reach " + what
		ans.Lines = []string{"next: work without it, or tell the user what it is needed for; asking again at once shows the user no form"}
	default:
		out.ID, out.Line, out.ExpiresAt = r.ID, "sandpit network grant "+r.ID, toolset.TimeText(r.Until)
		ans.Verdict = "not granted yet: the user has to allow sandbox " + r.Ref + " to reach " + what
		if shown {
			ans.Lines = append(ans.Lines, "the user was shown a form by your client, and it was not answered")
		}
		ans.Lines = append(ans.Lines, "the user types: "+out.Line,
			"next: show the user that line, and say why; try again when they have typed it. It is kept until "+out.ExpiresAt)
	}
	for _, d := range r.Names {
		out.Names = append(out.Names, d.Domain)
	}
	if len(out.Names) > 0 {
		ans.Lines = append(ans.Lines, "the presets stand for "+named(out.Names))
	}
	ans.Structured = out
	return ans
}

// requestShape is the structured answer.
type requestShape struct {
	Sandbox   string   `json:"sandbox"`
	State     string   `json:"state"` // pending, granted, denied, or allowed: already
	Allow     []string `json:"allow"`
	Names     []string `json:"preset_names,omitempty"`
	ID        string   `json:"request_id,omitempty"`
	Line      string   `json:"user_types,omitempty"`
	ExpiresAt string   `json:"expires_at,omitempty"`
}
