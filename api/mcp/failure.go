// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// failure is the result for what could not be done. Everything that a model
// needs is in the text: the cause, what was sent, the next call.
func (c *call) failure(ctx context.Context, err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		IsError: true,
		Content: []mcp.Content{&mcp.TextContent{Text: c.explain(ctx, err)}},
	}
}

func (c *call) explain(ctx context.Context, err error) string {
	e := fault.As(err)
	if e.Code == fault.Internal {
		id := rand.Text()
		c.log.ErrorContext(ctx, "a tool failed", "tool", c.tool.name, "sandbox", c.ref, "error", err, "failure", id)
		return "error (internal): the server has a fault; nothing is wrong with the call\n" +
			"next: try once more; if it stays, tell the user to look for " + id + " in the server's log"
	}
	var b strings.Builder
	if len(e.Fields) == 0 {
		fmt.Fprintf(&b, "error (%s): %s", e.Code, e.Message)
	} else {
		fmt.Fprintf(&b, "error (%s): %s", e.Code, c.field(e.Fields[0]))
		for _, f := range e.Fields[1:] {
			b.WriteString("\n  also: " + c.field(f))
		}
	}
	if next := c.next(ctx, e); next != "" {
		b.WriteString("\nnext: " + next)
	}
	return b.String()
}

// field names a wrong field as the tool does.
func (c *call) field(f fault.Field) string {
	name := f.Name
	for _, p := range c.tool.params {
		if rest, ok := strings.CutPrefix(name, p.field); ok && p.field != "" && (rest == "" || rest[0] == '[' || rest[0] == '.') {
			name = p.name + rest
			break
		}
	}
	return "argument " + name + " " + f.Message
}

// next is the next step in terms of tools. The engine's own remedies speak of
// verbs that may have no tool.
func (c *call) next(ctx context.Context, e *fault.Error) string {
	switch {
	case e.Code == fault.Canceled:
		return ""
	case e.Code == fault.Invalid && e.Remedy == "":
		return "call " + c.tool.name + " again, for example with " + c.tool.example
	case (e.Code == fault.Unavailable || e.Code == fault.Timeout) && e.Remedy == "":
		return "try again in a moment"
	case c.tool.words != nil:
		return c.tool.words.next(ctx, c, e)
	}
	switch e.Code {
	case fault.NotFound:
		if c.ref != "" && c.gone(ctx) {
			return c.went(ctx) + "create it with create_sandbox, or use one that there is: " + c.living(ctx)
		}
	case fault.State:
		if c.ref != "" {
			s, err := c.engine.Get(ctx, c.Caller, c.ref)
			switch {
			case err != nil:
			case s.State == sandbox.Paused && c.has(GroupState):
				return fmt.Sprintf("call resume_sandbox with {\"sandbox\": %s}: its processes go on where they were", quote(c.ref))
			case s.Key != "" && s.State == sandbox.Stopped:
				return fmt.Sprintf("call create_sandbox with {\"name\": %s}: it starts the sandbox again, with its files", quote(s.Key))
			}
		}
	case fault.Exhausted:
		return strings.TrimPrefix(e.Remedy+"; ", "; ") + "delete_sandbox frees what a sandbox holds; there are: " + c.living(ctx)
	case fault.Exists:
		if c.tool.name != "create_sandbox" && c.tool.name != "run_sandbox" {
			return e.Remedy
		}
		return "leave the image out to use the sandbox as it is, choose another name, or delete_sandbox it first (its files are lost)"
	}
	return e.Remedy
}

// gone tells whether it is the sandbox that does not exist, and not a thing in it.
func (c *call) gone(ctx context.Context) bool {
	_, err := c.engine.Get(ctx, c.Caller, c.ref)
	return fault.Is(err, fault.NotFound)
}

// went says when the sandbox was deleted, where that is known.
func (c *call) went(ctx context.Context) string {
	ev, err := c.engine.Departed(ctx, c.Caller, c.ref)
	if err != nil {
		return "" // it never was, or was asked for by a name
	}
	return fmt.Sprintf("it was deleted at %s by %s; ", timeText(ev.At), quote(clip(ev.Actor)))
}

// few is how many names an error lists.
const few = 5

// living names a few sandboxes of the caller's, the newest first.
func (c *call) living(ctx context.Context) string {
	page, err := c.engine.List(ctx, c.Caller, store.SandboxQuery{Limit: few})
	if err != nil || len(page.Items) == 0 {
		return "none"
	}
	names := make([]string, 0, few)
	for _, s := range page.Items {
		names = append(names, s.Ref())
	}
	out := strings.Join(names, ", ")
	if page.Total > len(names) {
		out += fmt.Sprintf(" … (%d in all, see list_sandboxes)", page.Total)
	}
	return out
}
