// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// words are what a profile that is another server's calls things, for errors: the
// next step of a remedy has to be a tool that the model has.
type words struct {
	sandbox string   // the argument that names one
	aliases []string // of that argument
	create  string   // the tools
	remove  string
	read    string
	shell   string
	resume  string // what to do with a paused one, a clause
}

// which is the argument that says in which sandbox.
func (w *words) which() param {
	return param{name: w.sandbox, kind: text, required: true, field: "key", about: "Id of the sandbox, as " + w.create + " gave it.", aliases: w.aliases}
}

// in reads that argument; a problem is kept in the call's arguments.
func (w *words) in(c *call) string {
	if c.ref = c.args.text(w.sandbox); c.ref == "" && len(c.args.bad) == 0 {
		c.args.add(w.sandbox, "is empty; %s gives one", w.create)
	}
	return c.ref
}

// next is the next step after an error, where that is told in terms of the profile's tools.
func (w *words) next(ctx context.Context, c *call, e *fault.Error) string {
	switch e.Code {
	case fault.NotFound:
		if c.ref != "" && c.gone(ctx) {
			return c.went(ctx) + "make one with " + w.create + ", or use one that there is: " + c.ids(ctx)
		}
	case fault.State:
		if c.ref != "" {
			if s, err := c.engine.Get(ctx, c.Caller, c.ref); err == nil && s.State == sandbox.Paused {
				return w.resume
			}
		}
	case fault.Exhausted:
		return strings.TrimPrefix(e.Remedy+"; ", "; ") + w.remove + " frees what a sandbox holds; there are: " + c.ids(ctx)
	}
	return e.Remedy
}

// ids lists a few sandboxes of the caller's by their ids, the newest first.
func (c *call) ids(ctx context.Context) string {
	page, err := c.engine.List(ctx, c.Caller, store.SandboxQuery{Limit: few})
	if err != nil || len(page.Items) == 0 {
		return "none"
	}
	var ids []string
	for _, s := range page.Items {
		ids = append(ids, string(s.ID))
	}
	return strings.Join(ids, ", ")
}

// pathError adds to an error about a path what is near it, and the tool to use.
func (w *words) pathError(ctx context.Context, c *call, p string, err error) error {
	e := fault.As(err)
	switch {
	case e.Code == fault.NotFound:
		return c.pathError(ctx, c.ref, p, err)
	case e.Code == fault.Denied && c.Caller.May(access.SandboxesWrite):
		return fault.Wrap(fault.Denied, err, "%s (path %s)", e.Message, quote(clip(p))).
			WithRemedy("commands and files are the user sandbox's, who writes below %s", strings.Join(sandbox.Writable(), ", "))
	case e.Code == fault.Invalid && e.Remedy == "":
		told := *e
		if _, _, lerr := c.engine.ListFiles(ctx, c.Caller, c.ref, p, agent.ListOptions{Limit: 1}); lerr == nil {
			return told.WithRemedy("it is a directory: list_files shows what is in it")
		}
		return told.WithRemedy("if it is a file, use %s", w.read)
	}
	return err
}

// ended deletes the call's sandbox, and gives its id. One that was deleted before is
// no error: what should be gone is gone.
func (c *call) ended(ctx context.Context) (id string, err error) {
	id = c.ref
	s, err := c.engine.Get(ctx, c.Caller, c.ref)
	if err == nil {
		id = string(s.ID)
		err = c.engine.Delete(ctx, c.Caller, id)
	}
	if fault.Is(err, fault.NotFound) {
		if _, derr := c.engine.Departed(ctx, c.Caller, id); derr == nil {
			return id, nil
		}
	}
	return id, err
}

// inJSON is an answer whose text is a JSON value, as the other server's clients read
// it; notes stand apart from it.
func inJSON(v any, indent string) (*answer, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the answer is not JSON")
	}
	return inText(strings.TrimSuffix(b.String(), "\n")), nil
}

// inText is an answer of exactly this text.
func inText(s string) *answer { return &answer{verdict: s, exact: true} }

// whole runs a command to its end, for tools that have no way to read on, and says
// what else there is to know of it.
func (w *words) whole(ctx context.Context, c *call, r engine.ExecRequest) (*ended, []string, error) {
	began := time.Now()
	done, err := c.exec(ctx, c.ref, r, defaultOutput)
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	if done.CauseDetail != "" {
		notes = append(notes, "cause: "+done.CauseDetail)
	}
	for _, line := range c.blocked(ctx, c.ref, done, began) {
		if !strings.HasPrefix(line, "next: ") { // it speaks of tools of the default profile
			notes = append(notes, line)
		}
	}
	if !done.whole() {
		if path, err := c.keepLog(ctx, c.ref, done.ProcessID); err != nil {
			notes = append(notes, "the output was shortened, and could not be kept in a file; run it again with > out.log 2>&1")
		} else {
			notes = append(notes, fmt.Sprintf("the output was shortened; all of it is in the file %s of the sandbox, for %s and %s", path, w.read, w.shell))
		}
	}
	return done, notes, nil
}
