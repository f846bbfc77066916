// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// paramSandbox is the argument that says where. It is optional: see the
// package's word on the default sandbox.
func paramSandbox() toolset.Param {
	return toolset.Param{
		Name: "sandbox", Kind: toolset.Text, Field: "key",
		About:   "Name or id; left out: your default one.",
		Aliases: sandboxAliases(),
	}
}

func sandboxAliases() []string {
	return []string{"sandbox_id", "sandbox_name", "name", "id", "identifier", "session_key"}
}

// defaultKey is the key of a caller's default sandbox.
func defaultKey(c access.Caller) string {
	return "default-" + strings.ReplaceAll(c.Actor, "/", "-")
}

// at runs a tool in a sandbox that is there already.
func at(do func(ctx context.Context, c *toolset.Call, ref string) (*toolset.Answer, error)) func(context.Context, *toolset.Call) (*toolset.Answer, error) {
	return func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
		ref, err := place(ctx, c, false)
		if err != nil {
			return nil, err
		}
		return do(ctx, c, ref)
	}
}

// verb is a method that makes something of a sandbox.
type verb func(s service.Sandboxes, ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)

// becoming runs a tool that makes something of a sandbox, and answers with what it is then,
// in the words of say: what happened, and what may come next.
func becoming(do verb, say func(*sandbox.Sandbox) (verdict string, next []string)) func(context.Context, *toolset.Call) (*toolset.Answer, error) {
	return at(func(ctx context.Context, c *toolset.Call, ref string) (*toolset.Answer, error) {
		s, err := do(c.Sandboxes, ctx, c.Caller, ref)
		if err != nil {
			return nil, err
		}
		verdict, next := say(s)
		return &toolset.Answer{Verdict: verdict, Lines: next, Structured: describe(ctx, c, s)}, nil
	})
}

// place returns the sandbox to work in, unless an argument that was read before is wrong. Where
// none was named it is the default one, which is made if it is missing and make is set.
func place(ctx context.Context, c *toolset.Call, make bool) (string, error) {
	if c.Args.Has("sandbox") {
		c.Ref = c.Args.Text("sandbox")
		if c.Ref == "" {
			return "", fault.InvalidField("sandbox", "is empty; leave it out for the default one")
		}
		return c.Ref, c.Args.Err()
	}
	if err := c.Args.Err(); err != nil {
		return "", err
	}
	if c.Caller.Sandbox != "" { // a token that is good for one sandbox alone
		c.Ref = string(c.Caller.Sandbox)
		return c.Ref, nil
	}
	c.Ref = defaultKey(c.Caller)
	_, err := c.Sandboxes.Get(ctx, c.Caller, c.Ref)
	if !fault.Is(err, fault.NotFound) {
		return c.Ref, err
	}
	if !make {
		return "", fault.New(fault.NotFound, "your default sandbox %q does not exist yet, so there is nothing in it", c.Ref)
	}
	_, created, err := c.Sandboxes.Create(ctx, c.Caller, engine.CreateRequest{Key: c.Ref})
	if err != nil {
		return "", err
	}
	if created {
		c.Args.Notes = append(c.Args.Notes, "the default sandbox "+c.Ref+" was just created; it is empty")
	}
	return c.Ref, nil
}
