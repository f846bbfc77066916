// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// mostEvents is the most events of a page.
const mostEvents = 200

func listActivity() toolset.Tool {
	return toolset.Tool{
		Name: "list_activity", Title: "What happened to a sandbox", ReadOnly: true, Idempotent: true,
		About: "List what happened to a sandbox, the newest first: commands with their results, file changes, starts and stops and what caused them, refusals of the network.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "type", Kind: toolset.Text, About: "Only these types, with commas, like exec, sandbox.stopped, network.refused.", Aliases: []string{"types"}},
			{Name: "process", Kind: toolset.Text, About: "Only what is about this command.", Aliases: []string{"process_id"}},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: mostEvents, About: "How many, default 20.", Aliases: []string{"max_results"}},
			paramCursor(),
		},
		Example: `{"type": "exec"}`,
		Run:     activity,
	}
}

func activity(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	q := engine.ActivityRequest{Limit: int(a.Number("limit", 20)), Cursor: a.Text("cursor"), ProcessID: a.Text("process")}
	for _, t := range a.List("type") {
		q.Types = append(q.Types, sandbox.EventType(t))
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	events, next, err := c.Activity.Activity(ctx, c.Caller, ref, q)
	if err != nil {
		return nil, err
	}
	ans := &toolset.Answer{Verdict: toolset.Counted(len(events), "event", "events") + " of sandbox " + ref}
	if next != "" {
		ans.Notes = append(ans.Notes, "there are more; call again with cursor "+toolset.Quote(next))
	}
	if len(events) > 0 {
		var b strings.Builder
		for _, e := range events {
			b.WriteString(eventLine(e) + "\n")
		}
		// Commands and names of files are what programs and people wrote.
		ans.Sections = []toolset.Section{{Title: "events", Body: b.String()}}
	}
	return ans, nil
}

// eventLine is an event in one line.
func eventLine(e *sandbox.Event) string {
	line := toolset.TimeText(e.At) + " " + string(e.Type)
	switch {
	case e.Type == sandbox.EventExec || e.Type == sandbox.EventTerminal || e.Type == sandbox.EventCode:
		line += " " + e.ProcessID
		if !e.Done {
			line += " runs"
		} else {
			line += fmt.Sprintf(" exit %d after %s", e.ExitCode, toolset.Took(e.Duration))
			if e.Cause != sandbox.CauseNone {
				line += " (" + toolset.CauseText(e.Cause) + ")"
			}
			if by := toolset.SignaledText(e.Signaled); by != "" {
				line += ", " + by
			}
			if e.ChangesTotal > 0 {
				line += ", " + toolset.Counted(e.ChangesTotal, "file", "files") + " changed"
			}
		}
		line += ": " + oneLineOf(e.Command)
	case e.Path != "":
		line += " " + toolset.Clip(toolset.PrintablePath(e.Path))
		if e.To != "" {
			line += " to " + toolset.Clip(toolset.PrintablePath(e.To))
		}
		if !e.OK {
			line += " failed"
		}
	}
	if e.Cause != sandbox.CauseNone && e.Type != sandbox.EventExec && e.Type != sandbox.EventTerminal && e.Type != sandbox.EventCode {
		line += " (" + string(e.Cause) + ")"
	}
	if e.Detail != "" {
		line += ": " + oneLineOf(e.Detail)
	}
	return line + " · by " + oneLineOf(e.Actor) + " through " + e.Via
}

// oneLineOf shows the beginning of a text that is not ours, in one line.
func oneLineOf(s string) string {
	return toolset.PrintablePath(sandbox.Clip(strings.Join(strings.Fields(s), " "), 2*toolset.MaxShown))
}
