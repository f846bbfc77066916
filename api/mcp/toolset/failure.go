// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Failure is the result for what could not be done. Everything that a model
// needs is in the text: the cause, what was sent, the next call.
func (c *Call) Failure(ctx context.Context, err error) *mcp.CallToolResult {
	c.Failed = err
	return &mcp.CallToolResult{
		IsError: true,
		Content: []mcp.Content{&mcp.TextContent{Text: c.explain(ctx, err)}},
	}
}

func (c *Call) explain(ctx context.Context, err error) string {
	e := fault.As(err)
	if e.Code == fault.Internal {
		id := rand.Text()
		c.Log.ErrorContext(ctx, "a tool failed", "tool", c.Tool.Name, "sandbox", c.Ref, "error", err, "failure", id)
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
	if e.Reason != "" {
		b.WriteString("\nreason: " + e.Reason)
	}
	if next := c.next(ctx, e); next != "" {
		b.WriteString("\nnext: " + next)
	}
	return b.String()
}

// field names a wrong field as the tool does.
func (c *Call) field(f fault.Field) string {
	name := f.Name
	for _, p := range c.Tool.Params {
		if rest, ok := strings.CutPrefix(name, p.Field); ok && p.Field != "" && (rest == "" || rest[0] == '[' || rest[0] == '.') {
			name = p.Name + rest
			break
		}
	}
	return "argument " + name + " " + f.Message
}

// next is the next step in terms of tools. The engine's own remedies speak of
// verbs that may have no tool.
func (c *Call) next(ctx context.Context, e *fault.Error) string {
	switch {
	case e.Code == fault.Canceled:
		return ""
	case e.Busy:
		return "call " + c.Tool.Name + " again in " + e.Retry.Round(time.Second).String() + ", and less at once; nothing was begun, and nothing need be deleted"
	case e.Code == fault.Invalid && e.Remedy == "":
		return "call " + c.Tool.Name + " again, for example with " + c.Tool.Example
	case (e.Code == fault.Unavailable || e.Code == fault.Timeout) && e.Remedy == "":
		return "try again in a moment"
	case c.Tool.Words != nil:
		return c.Tool.Words.next(ctx, c, e)
	}
	switch e.Code {
	case fault.NotFound:
		if c.Ref != "" && c.Gone(ctx) {
			return c.went(ctx) + "create it with create_sandbox, or use one that there is: " + c.Living(ctx)
		}
	case fault.State:
		if c.Ref != "" {
			s, err := c.Sandboxes.Get(ctx, c.Caller, c.Ref)
			switch {
			case err != nil:
			case s.State == sandbox.Paused && c.Has(GroupState):
				return fmt.Sprintf("call resume_sandbox with {\"sandbox\": %s}: its processes go on where they were", Quote(c.Ref))
			case s.Key != "" && s.State.Down():
				return fmt.Sprintf("call create_sandbox with {\"name\": %s}: it starts the sandbox again, with its files", Quote(s.Key))
			}
		}
	case fault.Exhausted:
		switch {
		case e.Inside && c.Ref != "":
			return c.outOfFull()
		case c.lacksRoom(ctx):
			return strings.TrimPrefix(e.Remedy+"; ", "; ") + "delete_sandbox frees what a sandbox holds; there are: " + c.Living(ctx)
		}
	case fault.Exists:
		if c.Tool.Name != "create_sandbox" && c.Tool.Name != "run_sandbox" {
			return e.Remedy
		}
		return "leave the image out to use the sandbox as it is, choose another name, or delete_sandbox it first (its files are lost)"
	}
	return e.Remedy
}

// outOfFull says how a sandbox that has no room for another process gets it.
func (c *Call) outOfFull() string {
	which := Quote(c.Ref)
	switch {
	case !c.OwnTools():
		return fmt.Sprintf("call restart_sandbox with {\"identifier\": %s}: it has an empty disk afterwards, and all its files are lost", which)
	case c.Has(GroupProcess):
		next := fmt.Sprintf("call stop_process with {\"sandbox\": %s, \"all\": true}: it ends all that runs in this sandbox and keeps its files", which)
		if c.Has(GroupState) {
			next += "; restart_sandbox does so from outside, where that fails"
		}
		return next
	}
	return "ask the user to end what runs in it, by sandpit kill --all " + c.Ref
}

// lacksRoom reports whether what was refused for want of room was to make or to start a sandbox, so
// that another one's end helps.
func (c *Call) lacksRoom(ctx context.Context) bool {
	switch c.Tool.Name {
	case "create_sandbox", "fork_sandbox", "run_sandbox":
		return true
	case "snapshot_sandbox":
		return false
	}
	if c.Ref == "" {
		return false
	}
	s, err := c.Sandboxes.Get(ctx, c.Caller, c.Ref)
	return fault.Is(err, fault.NotFound) || err == nil && s.State != sandbox.Running
}

// Gone reports whether it is the sandbox that does not exist, and not a thing in it.
func (c *Call) Gone(ctx context.Context) bool {
	_, err := c.Sandboxes.Get(ctx, c.Caller, c.Ref)
	return fault.Is(err, fault.NotFound)
}

// went says when the sandbox was deleted, where that is known.
func (c *Call) went(ctx context.Context) string {
	ev, err := c.Activity.Departed(ctx, c.Caller, c.Ref)
	if err != nil {
		return "" // it never was, or was asked for by a name
	}
	return fmt.Sprintf("it was deleted at %s by %s; ", TimeText(ev.At), Quote(Clip(ev.Actor)))
}

// Few is how many names an error lists.
const Few = 5

// Living names a few sandboxes of the caller's, the newest first.
func (c *Call) Living(ctx context.Context) string {
	page, err := c.Sandboxes.List(ctx, c.Caller, engine.SandboxesRequest{Limit: Few})
	if err != nil || len(page.Items) == 0 {
		return "none"
	}
	names := make([]string, 0, Few)
	for _, s := range page.Items {
		names = append(names, s.Ref())
	}
	out := strings.Join(names, ", ")
	if page.Total > len(names) {
		out += fmt.Sprintf(" … (%d in all, see list_sandboxes)", page.Total)
	}
	return out
}
