// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/toolset"
	apiruns "sandpit.dev/api/runs"
	"sandpit.dev/engine"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// Words of the path after /mcp that are no profiles, but about runs.
const (
	WordRuns   = "runs"
	WordEvents = "events"
)

// Addresses are where runs are, for who knows of one by this coat.
var Addresses = apiruns.Addresses{Status: "/mcp/" + WordRuns + "/{id}", Events: "/mcp/" + WordEvents + "?run_id={id}"}

// runHandle is the structured answer of run_sandbox.
type runHandle struct {
	Tool        string          `json:"tool"`
	RunID       string          `json:"run_id"`
	Identifier  string          `json:"identifier"`
	SandboxName string          `json:"sandbox_name"`
	EventsURL   string          `json:"events_url"`
	StatusURL   string          `json:"status_url"`
	Final       json.RawMessage `json:"final,omitempty"` // null: it was waited for, and goes on
	// Next are the calls that wait for it and that end it, for clients that show a
	// model nothing else; the profile that is another server's has no such field.
	Next []string `json:"next,omitempty"`
}

func handleOf(c *toolset.Call, r *sandbox.Run, final json.RawMessage) runHandle {
	at := apiruns.Shape(r, nil, Addresses)
	h := runHandle{c.Tool.Name, r.ID, r.Identifier, r.Identifier, at.EventsURL, at.StatusURL, final, nil}
	if c.OwnTools() && !r.State.Ended() {
		h.Next = Next(c, r)
	}
	return h
}

// startedAnswer is the answer of a call that does not wait.
func startedAnswer(c *toolset.Call, r *sandbox.Run) *toolset.Answer {
	h := handleOf(c, r, nil)
	return &toolset.Answer{
		Verdict:    fmt.Sprintf("run %s: %d commands · sandbox %s · run %s", r.State, len(r.Commands), r.Identifier, r.ID),
		Lines:      append([]string{"status: GET " + h.StatusURL, "events: GET " + h.EventsURL}, Next(c, r)...),
		Structured: h,
	}
}

// Answer is the answer of a call that has waited.
func Answer(c *toolset.Call, r *sandbox.Run, streams []runs.Streams) *toolset.Answer {
	a := new(toolset.Answer)
	done, short, limit := 0, false, max(leastShare, runOutput/len(r.Commands))
	shape := apiruns.Shape(r, streams, Addresses)
	for i := range r.Commands {
		cmd, el := &r.Commands[i], &shape.Commands[i]
		line := fmt.Sprintf("[%d] %s", i, cmd.Status)
		if r.State.Ended() && cmd.Status == sandbox.CommandQueued {
			line += ", and never begun"
		}
		if cmd.Status != sandbox.CommandQueued {
			e := endedOf(cmd, &streams[i], limit)
			el.Stdout, el.Stderr = e.Stdout.Text, e.Stderr.Text
			el.StdoutTruncated, el.StderrTruncated = cmd.StdoutTruncated || !e.Stdout.Whole(), cmd.StderrTruncated || !e.Stderr.Whole()
			short = short || el.StdoutTruncated || el.StderrTruncated
			switch {
			case cmd.Error != "":
				line += ": " + cmd.Error
			case cmd.Status != sandbox.CommandRunning:
				line += ": " + e.Verdict()
				done++
			}
			for _, s := range e.Sections(fmt.Sprintf("[%d] ", i)) {
				if s.Body != "" {
					a.Sections = append(a.Sections, s)
				}
			}
		}
		a.Lines = append(a.Lines, line+" · "+oneLine(cmd))
	}
	final := json.RawMessage("null")
	if r.State.Ended() {
		var err error
		if final, err = json.Marshal(shape); err != nil {
			final = json.RawMessage("null") // cannot be: all of it is text and numbers
		}
		a.Verdict = fmt.Sprintf("run %s: %d of %d commands ran in %s · sandbox %s · run %s",
			r.State, done, len(r.Commands), toolset.Took(r.EndedAt.Sub(started(r))), r.Identifier, r.ID)
	} else {
		a.Verdict = fmt.Sprintf("run %s: it goes on; %d of %d commands have ended · sandbox %s · run %s", r.State, done, len(r.Commands), r.Identifier, r.ID)
		a.Lines = append(a.Lines, Next(c, r)...)
	}
	a.Structured = handleOf(c, r, final)
	if r.Error != "" {
		a.Lines = append(a.Lines, "cause: "+r.Error)
	}
	addArtifacts(c, a, r)
	if short {
		a.Notes = append(a.Notes, "output was shortened; GET "+shape.StatusURL+" has up to 1 MiB of each stream, or write it to a file with > out.log 2>&1")
	}
	return a
}

// started returns when a run began, or was asked for where it has not begun.
func started(r *sandbox.Run) time.Time {
	if r.StartedAt.IsZero() {
		return r.CreatedAt
	}
	return r.StartedAt
}

// endedOf shows a command of a run as any other.
func endedOf(c *sandbox.RunCommand, s *runs.Streams, limit int) *toolset.Outcome {
	e := &toolset.Outcome{ExecResult: engine.ExecResult{ProcessID: c.ProcessID, Running: c.EndedAt.IsZero(), Result: sandbox.Result{
		ExitCode: c.ExitCode, Signal: c.Signal, Cause: c.Cause, Duration: c.EndedAt.Sub(c.StartedAt),
		StdoutBytes: c.StdoutBytes, StderrBytes: c.StderrBytes,
	}}}
	var out, errs toolset.Capture
	out.Add(s.Stdout)
	errs.Add(s.Stderr)
	e.Show(&out, &errs, limit)
	return e
}

// addArtifacts adds links to the files that were copied out after a run.
func addArtifacts(c *toolset.Call, a *toolset.Answer, r *sandbox.Run) {
	if r.ArtifactsError != "" {
		a.Lines = append(a.Lines, "artifacts: none were copied out: "+r.ArtifactsError)
	}
	if len(r.Artifacts) == 0 {
		return
	}
	a.Lines = append(a.Lines, fmt.Sprintf("artifacts (%d, %s):", len(r.Artifacts), toolset.BytesText(r.ArtifactBytes)))
	until := time.Now().Add(ArtifactLife).Truncate(time.Second)
	for i := range r.Artifacts {
		if i == toolset.MostMade {
			a.Lines = append(a.Lines, fmt.Sprintf("  … and %d more; GET %s lists them", len(r.Artifacts)-i, apiruns.Address(r, "")))
			break
		}
		f := &r.Artifacts[i]
		address := apiruns.Address(r, f.Path)
		if c.Links != nil && c.Address != nil {
			address = apiruns.Link(c.Links, c.Address, r, f.Path, until)
		}
		a.Lines = append(a.Lines, "  "+toolset.PrintablePath(f.Path)+" ("+toolset.BytesText(f.Size)+") "+address)
		a.Links = append(a.Links, &mcp.ResourceLink{
			URI: address, Name: toolset.PrintablePath(toolset.Clip(path.Base(f.Path))), MIMEType: toolset.MediaOf(f.Path), Size: &f.Size,
		})
	}
}

// ArtifactLife is how long the links of an answer are good.
const ArtifactLife = time.Hour

// oneLine shows a command's beginning.
func oneLine(c *sandbox.RunCommand) string {
	s := c.Shell
	if s == "" {
		s = strings.Join(c.Argv, " ")
	}
	return sandbox.Clip(strings.Join(strings.Fields(s), " "), toolset.MaxShown)
}
