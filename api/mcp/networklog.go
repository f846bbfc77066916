// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/sandbox"
)

// mostTried bounds what get_network_log lists.
const mostTried = 200

func getNetworkLog() tool {
	return tool{
		name: "get_network_log", title: "What a sandbox reached", readOnly: true, idempotent: true,
		about: "See what a sandbox may reach, what it tried to reach since it was started, what was refused and why, and which lists would allow it.",
		params: []param{
			paramSandbox(),
			{name: "refused", kind: boolean, about: "Only what was refused. Default false."},
		},
		example: `{"refused": true}`,
		run:     networkLog,
	}
}

func networkLog(ctx context.Context, c *call) (*answer, error) {
	refused := c.args.bool("refused", false)
	if err := c.args.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	s, err := c.engine.Get(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	log, err := c.engine.NetworkLog(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	sh := c.shape(ctx, s)
	ans := &answer{verdict: "sandbox " + ref + ": " + sh.networkText()}
	if log.Since.IsZero() {
		ans.lines = append(ans.lines, "it has had no network since it was started, or since the server was")
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
		fmt.Fprintf(&b, "%s %s port %d · %d times, last at %s · %s\n", x.Protocol, oneLineOf(what), x.Port, x.Count, timeText(x.Last), printablePath(sandbox.Clip(verdict, mostWhy)))
	}
	ans.lines = append(ans.lines, fmt.Sprintf("since %s it tried to reach %s", timeText(log.Since), counted(n, "thing", "things")))
	if n > mostTried || log.Dropped > 0 {
		ans.notes = append(ans.notes, fmt.Sprintf("%d more are not listed", max(n-mostTried, 0)+int(log.Dropped)))
	}
	if b.Len() > 0 {
		ans.sections = append(ans.sections, section{"tried", b.String()}) // names are what programs asked for
	}
	if p := log.Proposal; !p.Equal(log.Policy) {
		proposed := shapeOf(&sandbox.Sandbox{Network: p})
		proposed.networkShape = networkShapeOf(p)
		ans.sections = append(ans.sections, section{"what would allow it, if the user agrees", proposed.networkText()})
	}
	return ans, nil
}
