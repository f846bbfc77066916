// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// mostEvents is the most events of a page.
const mostEvents = 200

func listActivity() tool {
	return tool{
		name: "list_activity", title: "What happened to a sandbox", readOnly: true, idempotent: true,
		about: "List what happened to a sandbox, the newest first: commands with their results, file changes, starts and stops and what caused them, refusals of the network.",
		params: []param{
			paramSandbox(),
			{name: "type", kind: text, about: "Only these types, with commas, like exec, sandbox.stopped, network.refused.", aliases: []string{"types"}},
			{name: "process", kind: text, about: "Only what is about this command.", aliases: []string{"process_id"}},
			{name: "limit", kind: integer, min: 1, max: mostEvents, about: "How many, default 20.", aliases: []string{"max_results"}},
			paramCursor(),
		},
		example: `{"type": "exec"}`,
		run:     activity,
	}
}

func activity(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	q := store.EventQuery{Limit: int(a.number("limit", 20)), Cursor: a.text("cursor"), ProcessID: a.text("process")}
	for t := range strings.SplitSeq(a.text("type"), ",") {
		if t = strings.TrimSpace(t); t != "" {
			q.Types = append(q.Types, sandbox.EventType(t))
		}
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	events, next, err := c.engine.Activity(ctx, c.Caller, ref, q)
	if err != nil {
		return nil, err
	}
	ans := &answer{verdict: counted(len(events), "event", "events") + " of sandbox " + ref}
	if next != "" {
		ans.notes = append(ans.notes, "there are more; call again with cursor "+quote(next))
	}
	if len(events) > 0 {
		var b strings.Builder
		for _, e := range events {
			b.WriteString(eventLine(e) + "\n")
		}
		// Commands and names of files are what programs and people wrote.
		ans.sections = []section{{"events", b.String()}}
	}
	return ans, nil
}

// eventLine is an event in one line.
func eventLine(e *sandbox.Event) string {
	line := timeText(e.At) + " " + string(e.Type)
	switch {
	case e.Type == sandbox.EventExec || e.Type == sandbox.EventTerminal || e.Type == sandbox.EventCode:
		line += " " + e.ProcessID
		if !e.Done {
			line += " runs"
		} else {
			line += fmt.Sprintf(" exit %d after %s", e.ExitCode, took(e.Duration))
			if e.Cause != sandbox.CauseNone {
				line += " (" + causeText(e.Cause) + ")"
			}
			if e.ChangesTotal > 0 {
				line += ", " + counted(e.ChangesTotal, "file", "files") + " changed"
			}
		}
		line += ": " + oneLineOf(e.Command)
	case e.Path != "":
		line += " " + clip(printablePath(e.Path))
		if e.To != "" {
			line += " to " + clip(printablePath(e.To))
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
	return printablePath(sandbox.Clip(strings.Join(strings.Fields(s), " "), 2*maxShown))
}
