// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/sandbox"
)

// mostTried bounds what get_network_log lists.
const mostTried = 200

func getNetworkLog() toolset.Tool {
	return toolset.Tool{
		Name: "get_network_log", Title: "What a sandbox reached", ReadOnly: true, Idempotent: true,
		About: "See what a sandbox may reach, what it tried to reach since it was started, what was refused and why, and which lists would allow it.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "refused", Kind: toolset.Boolean, About: "Only what was refused. Default false."},
		},
		Example: `{"refused": true}`,
		Run:     networkLog,
	}
}

func networkLog(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	refused := c.Args.Bool("refused", false)
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	s, err := c.Sandboxes.Get(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	log, err := c.Networks.NetworkLog(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	sh := describe(ctx, c, s)
	ans := &toolset.Answer{Verdict: "sandbox " + ref + ": " + sh.networkText()}
	if log.Since.IsZero() {
		ans.Lines = append(ans.Lines, "it has had no network since it was started, or since the server was")
		return ans, nil
	}
	var b strings.Builder
	n := 0
	for _, x := range log.Entries {
		if refused && (x.Reason == "" || x.Learned) {
			continue
		}
		if n++; n > mostTried {
			continue
		}
		what := x.Name
		if what == "" && x.Address.IsValid() {
			what = x.Address.String()
		}
		verdict := "allowed"
		switch {
		case x.Learned:
			verdict = "let through, and noted: " + x.Explain()
		case x.Reason != "":
			verdict = "refused: " + x.Explain()
		}
		fmt.Fprintf(&b, "%s %s port %d · %d times, last at %s · %s\n", x.Protocol, oneLineOf(what), x.Port, x.Count, toolset.TimeText(x.Last), toolset.PrintablePath(sandbox.Clip(verdict, toolset.MostWhy)))
	}
	ans.Lines = append(ans.Lines, fmt.Sprintf("since %s it tried to reach %s", toolset.TimeText(log.Since), toolset.Counted(n, "thing", "things")))
	if n > mostTried || log.Dropped > 0 {
		ans.Notes = append(ans.Notes, fmt.Sprintf("%d more are not listed", max(n-mostTried, 0)+int(log.Dropped)))
	}
	if b.Len() > 0 {
		ans.Sections = append(ans.Sections, toolset.Section{Title: "tried", Body: b.String()}) // names are what programs asked for
	}
	if p := log.Proposal; !p.Equal(log.Policy) {
		proposed := shapeOf(&sandbox.Sandbox{Network: p})
		proposed.networkShape = networkShapeOf(p)
		ans.Sections = append(ans.Sections, toolset.Section{Title: "what would allow it, if the user agrees", Body: proposed.networkText()})
	}
	return ans, nil
}
