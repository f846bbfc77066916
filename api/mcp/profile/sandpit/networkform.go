// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/network/ask"
	"sandpit.dev/sandbox"
)

// What the form about a network is called, and its one field with what that takes. The first is not the one that
// grants: some clients send a form as it is.
const (
	networkQuestion = "network"
	networkField    = "answer"
	networkDeny     = "deny"
	networkAllow    = "allow for this sandbox"
)

// networkForm is what a person is asked about a request. Every host that could be reached is in it. The reason is the agent's: it is
// quoted, so that it has no line of its own.
func networkForm(r ask.Request) *mcp.ElicitParams {
	var b strings.Builder
	b.WriteString("An agent asks that the sandbox " + toolset.PrintablePath(r.Ref) + " may reach, on any port:\n")
	for _, d := range r.Domains {
		b.WriteString("- " + toolset.PrintablePath(d) + "\n")
	}
	for _, n := range r.Names {
		b.WriteString("- " + toolset.PrintablePath(n.Domain) + " (preset " + toolset.PrintablePath(n.Preset))
		if n.Source == sandbox.PresetFromImage {
			b.WriteString(", as the sandbox's image says")
		}
		b.WriteString(")\n")
	}
	if r.Why != "" {
		b.WriteString("The agent's own words, which nobody checked: " + strconv.Quote(r.Why) + "\n")
	}
	b.WriteString("What you allow holds for this sandbox alone, until its network is changed. What the sandbox holds can be sent there.")
	return &mcp.ElicitParams{
		Mode: "form", Message: b.String(),
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{networkField: map[string]any{
				"type": "string", "title": "Answer", "description": "Whether the sandbox may reach these hosts.",
				"enum": []string{networkDeny, networkAllow},
			}},
			"required": []string{networkField},
		},
	}
}

// networkChoice is what was said to the form. Nothing but its own words allows anything.
func networkChoice(said *mcp.ElicitResult) ask.Choice {
	switch said.Action {
	case "decline":
		return ask.Deny
	case "accept":
		if len(said.Content) != 1 {
			break
		}
		switch said.Content[networkField] {
		case networkAllow:
			return ask.Allow
		case networkDeny:
			return ask.Deny
		}
	}
	return ask.Unanswered
}

// askPerson has the client's person decide about a request that waits. The answer is not nil where the client has to be answered first;
// asked reports whether a form was shown.
func askPerson(ctx context.Context, c *toolset.Call, r ask.Request) (said ask.Choice, form string, first *toolset.Answer) {
	if !c.CanAsk() {
		return ask.Unanswered, "", nil
	}
	if form = c.Requests.ShowNetwork(c.Caller, r); form == "" {
		return ask.Unanswered, "", nil
	}
	q := networkForm(r)
	if c.AsksByResult() {
		return ask.Unanswered, form, &toolset.Answer{Ask: &toolset.Question{Name: networkQuestion, State: form, Form: q}}
	}
	waiting, cancel := context.WithTimeout(ctx, c.AskWait)
	defer cancel()
	res, err := c.Ask(waiting, q)
	if err != nil { // of no use to a model: it has the line for the user
		c.Log.DebugContext(ctx, "a client did not answer a form", "error", err)
		return ask.Unanswered, form, nil
	}
	return networkChoice(res), form, nil
}
