// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Words are what a profile that is another server's calls things, for errors: the
// next step of a remedy has to be a tool that the model has.
type Words struct {
	Sandbox string   // the argument that names one
	Aliases []string // of that argument
	Create  string   // the tools
	Remove  string
	Read    string
	Shell   string
	Resume  string // what to do with a paused one, a clause
}

// Which is the argument that says in which sandbox.
func (w *Words) Which() Param {
	return Param{Name: w.Sandbox, Kind: Text, Required: true, Field: "key", About: "Id of the sandbox, as " + w.Create + " gave it.", Aliases: w.Aliases}
}

// In reads that argument; a problem is kept in the call's arguments.
func (w *Words) In(c *Call) string {
	if c.Ref = c.Args.Text(w.Sandbox); c.Ref == "" && len(c.Args.Bad) == 0 {
		c.Args.Add(w.Sandbox, "is empty; %s gives one", w.Create)
	}
	return c.Ref
}

// next is the next step after an error, where that is told in terms of the profile's tools.
func (w *Words) next(ctx context.Context, c *Call, e *fault.Error) string {
	switch e.Code {
	case fault.NotFound:
		if c.Ref != "" && c.Gone(ctx) {
			return c.went(ctx) + "make one with " + w.Create + ", or use one that there is: " + c.ids(ctx)
		}
	case fault.State:
		if c.Ref != "" {
			if s, err := c.Sandboxes.Get(ctx, c.Caller, c.Ref); err == nil && s.State == sandbox.Paused {
				return w.Resume
			}
		}
	case fault.Exhausted:
		if e.Inside {
			return "ask the user to end what runs in it, by sandpit kill --all " + c.Ref + "; or " + w.Remove + " it, whose files are lost then, and " + w.Create + " another"
		}
		return strings.TrimPrefix(e.Remedy+"; ", "; ") + w.Remove + " frees what a sandbox holds; there are: " + c.ids(ctx)
	}
	return e.Remedy
}

// ids lists a few sandboxes of the caller's by their ids, the newest first.
func (c *Call) ids(ctx context.Context) string {
	page, err := c.Sandboxes.List(ctx, c.Caller, engine.SandboxesRequest{Limit: Few})
	if err != nil || len(page.Items) == 0 {
		return "none"
	}
	var ids []string
	for _, s := range page.Items {
		ids = append(ids, string(s.ID))
	}
	return strings.Join(ids, ", ")
}

// PathError adds to an error about a path what is near it, and the tool to use.
func (w *Words) PathError(ctx context.Context, c *Call, p string, err error) error {
	e := fault.As(err)
	switch {
	case e.Code == fault.NotFound:
		return c.PathError(ctx, c.Ref, p, err)
	case e.Code == fault.Denied && c.Caller.May(access.SandboxesWrite):
		return fault.Wrap(fault.Denied, err, "%s (path %s)", e.Message, Quote(Clip(p))).
			WithRemedy("commands and files are the user sandbox's, who writes below %s", strings.Join(sandbox.Writable(), ", "))
	case e.Code == fault.Invalid && e.Remedy == "":
		told := *e
		if _, _, lerr := c.Files.ListFiles(ctx, c.Caller, c.Ref, p, sandbox.ListFilesOptions{Limit: 1}); lerr == nil {
			return told.WithRemedy("it is a directory: list_files shows what is in it")
		}
		return told.WithRemedy("if it is a file, use %s", w.Read)
	}
	return err
}

// Delete deletes the call's sandbox, and gives its id. One that was deleted before is
// no error: what should be gone is gone.
func (c *Call) Delete(ctx context.Context) (id string, err error) {
	id = c.Ref
	s, err := c.Sandboxes.Get(ctx, c.Caller, c.Ref)
	if err == nil {
		id = string(s.ID)
		err = c.Sandboxes.Delete(ctx, c.Caller, id)
	}
	if fault.Is(err, fault.NotFound) {
		if _, derr := c.Activity.Departed(ctx, c.Caller, id); derr == nil {
			return id, nil
		}
	}
	return id, err
}

// JSONAnswer is an answer whose text is a JSON value, as the other server's clients read
// it; notes stand apart from it.
func JSONAnswer(v any, indent string) (*Answer, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the answer is not JSON")
	}
	return TextAnswer(strings.TrimSuffix(b.String(), "\n")), nil
}

// TextAnswer is an answer of exactly this text.
func TextAnswer(s string) *Answer { return &Answer{Verdict: s, exact: true} }

// Whole runs a command to its end, for tools that have no way to read on, and says
// what else there is to know of it.
func (w *Words) Whole(ctx context.Context, c *Call, r engine.ExecRequest) (*Outcome, []string, error) {
	began := time.Now()
	done, err := c.Exec(ctx, c.Ref, r, DefaultOutput)
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	if done.CauseDetail != "" {
		notes = append(notes, "cause: "+done.CauseDetail)
	}
	if by := SignaledText(done.Signaled); by != "" {
		notes = append(notes, "signal: "+by)
	}
	for _, line := range c.Blocked(ctx, c.Ref, done, began) {
		if !strings.HasPrefix(line, "next: ") { // it speaks of tools of the default profile
			notes = append(notes, line)
		}
	}
	if !done.Whole() {
		if path, err := c.KeepLog(ctx, c.Ref, done.ProcessID); err != nil {
			notes = append(notes, "the output was shortened, and could not be kept in a file; run it again with > out.log 2>&1")
		} else {
			notes = append(notes, fmt.Sprintf("the output was shortened; all of it is in the file %s of the sandbox, for %s and %s", path, w.Read, w.Shell))
		}
	}
	return done, notes, nil
}
