// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// paramSandbox is the argument that says where. It is optional: see the
// package's word on the default sandbox.
func paramSandbox() param {
	return param{
		name: "sandbox", kind: text, field: "key",
		about:   "Name or id of the sandbox. Left out: your default one, made when first needed.",
		aliases: sandboxAliases(),
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
func at(do func(ctx context.Context, c *call, ref string) (*answer, error)) func(context.Context, *call) (*answer, error) {
	return func(ctx context.Context, c *call) (*answer, error) {
		ref, err := c.place(ctx, false)
		if err != nil {
			return nil, err
		}
		return do(ctx, c, ref)
	}
}

// verb is a method of the engine that makes something of a sandbox.
type verb func(e Engine, ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)

// becoming runs a tool that makes something of a sandbox, and answers with what it is then,
// in the words of say: what happened, and what may come next.
func becoming(do verb, say func(*sandbox.Sandbox) (verdict string, next []string)) func(context.Context, *call) (*answer, error) {
	return at(func(ctx context.Context, c *call, ref string) (*answer, error) {
		s, err := do(c.engine, ctx, c.Caller, ref)
		if err != nil {
			return nil, err
		}
		verdict, next := say(s)
		return &answer{verdict: verdict, lines: next, structured: c.shape(ctx, s)}, nil
	})
}

// place gives the sandbox to work in, unless an argument that was read before is wrong. Where
// none was named it is the default one, which is made if it is missing and make is set.
func (c *call) place(ctx context.Context, make bool) (string, error) {
	if c.args.has("sandbox") {
		c.ref = c.args.text("sandbox")
		if c.ref == "" {
			return "", fault.InvalidField("sandbox", "is empty; leave it out for the default one")
		}
		return c.ref, c.args.err()
	}
	if err := c.args.err(); err != nil {
		return "", err
	}
	c.ref = defaultKey(c.Caller)
	_, err := c.engine.Get(ctx, c.Caller, c.ref)
	if !fault.Is(err, fault.NotFound) {
		return c.ref, err
	}
	if !make {
		return "", fault.New(fault.NotFound, "your default sandbox %q does not exist yet, so there is nothing in it", c.ref)
	}
	_, created, err := c.engine.Create(ctx, c.Caller, engine.CreateRequest{Key: c.ref})
	if err != nil {
		return "", err
	}
	if created {
		c.args.notes = append(c.args.notes, "the default sandbox "+c.ref+" was just created; it is empty")
	}
	return c.ref, nil
}
