// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/sandbox"
)

func getSandboxLimits() toolset.Tool {
	return toolset.Tool{
		Name: "get_sandbox_limits", Title: "What a sandbox may have", ReadOnly: true, Idempotent: true,
		About: "What a sandbox gets by default and may ask for at most, how long commands may take, which networks there are, how many sandboxes you have and what they take. With sandbox: also what that one has.",
		Params: []toolset.Param{
			{Name: "sandbox", Kind: toolset.Text, About: "Name or id of a sandbox.", Aliases: sandboxAliases()},
		},
		Example: `{"sandbox": "my-project"}`,
		Run:     limits,
	}
}

// limitsReport is the structured answer.
type limitsReport struct {
	toolset.LimitsShape
	Sandbox *shape `json:"sandbox,omitempty"` // that was asked for
}

func limits(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	of := c.Args.Text("sandbox")
	if c.Args.Has("sandbox") && of == "" {
		c.Args.Add("sandbox", "is empty; leave it out for what holds for all")
	}
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	l, err := c.AllLimits(ctx)
	if err != nil {
		return nil, err
	}
	out := limitsReport{LimitsShape: l}
	total := 0
	for _, n := range out.Sandboxes {
		total += n
	}
	networks := "network: " + out.NetworkDefault + " unless a sandbox asks for another; it can have " + strings.Join(out.Networks, ", ")
	if len(out.Networks) == 1 {
		networks = "network: " + out.Networks[0] + ", for every sandbox"
	}
	if out.NetworkReason != "" {
		networks += " (" + out.NetworkReason + ")"
	}
	if presets := c.Networks.PresetNames(); len(out.Networks) > 1 && len(presets) > 0 {
		networks += "; allow_domains takes the presets " + strings.Join(presets, ", ")
	}
	ans := &toolset.Answer{
		Verdict: fmt.Sprintf("a sandbox gets %s", out.Default),
		Lines: []string{
			"at most: " + out.Most.String(),
			"sizes: " + c.SizesText(),
			fmt.Sprintf("a command ends after %s s unless it asks for more, at most %s s", toolset.Decimal(out.CommandSeconds), toolset.Decimal(out.MaxSeconds)),
			fmt.Sprintf("your sandboxes: %d, of which %d run, with %s together", total, out.Sandboxes[string(sandbox.Running)], out.InUse),
			networks,
			fmt.Sprintf("as_user root: %v; %s", out.Root, out.Budget),
		},
	}
	if out.Project != nil {
		ans.Lines = append(ans.Lines, out.Project.String())
	}
	if n := len(out.Server.Cannot); n > 0 {
		ans.Lines = append(ans.Lines, "not on this host: "+strings.Join(slices.Sorted(maps.Keys(out.Server.Cannot)), ", "))
	}
	if of != "" {
		c.Ref = of
		s, err := c.Sandboxes.Get(ctx, c.Caller, of)
		if err != nil {
			return nil, err
		}
		out.Sandbox = new(describe(ctx, c, s))
		ans.Lines = append(ans.Lines, fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State))
		ans.Lines = append(ans.Lines, out.Sandbox.lines()...)
	}
	ans.Structured = out
	return ans, nil
}
