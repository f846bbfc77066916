// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/runs"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// runAddresses are where runs are, for who knows of one by this coat.
var runAddresses = runs.Addresses{Status: "/mcp/" + wordRuns + "/{id}", Events: "/mcp/" + wordEvents + "?run_id={id}"}

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

func (c *call) runHandle(r *sandbox.Run, final json.RawMessage) runHandle {
	at := runs.Shape(r, nil, runAddresses)
	h := runHandle{c.tool.name, r.ID, r.Identifier, r.Identifier, at.EventsURL, at.StatusURL, final, nil}
	if c.ownTools() && !r.State.Ended() {
		h.Next = c.nextOf(r)
	}
	return h
}

// runStarted is the answer of a call that does not wait.
func (c *call) runStarted(r *sandbox.Run) *answer {
	h := c.runHandle(r, nil)
	return &answer{
		verdict:    fmt.Sprintf("run %s: %d commands · sandbox %s · run %s", r.State, len(r.Commands), r.Identifier, r.ID),
		lines:      append([]string{"status: GET " + h.StatusURL, "events: GET " + h.EventsURL}, c.nextOf(r)...),
		structured: h,
	}
}

// runAnswer is the answer of a call that has waited.
func (c *call) runAnswer(r *sandbox.Run, streams []engine.RunStreams) *answer {
	a := new(answer)
	done, short, limit := 0, false, max(leastShare, runOutput/len(r.Commands))
	shape := runs.Shape(r, streams, runAddresses)
	for i := range r.Commands {
		cmd, el := &r.Commands[i], &shape.Commands[i]
		line := fmt.Sprintf("[%d] %s", i, cmd.Status)
		if r.State.Ended() && cmd.Status == sandbox.CommandQueued {
			line += ", and never begun"
		}
		if cmd.Status != sandbox.CommandQueued {
			e := endedOf(cmd, &streams[i], limit)
			el.Stdout, el.Stderr = e.stdout.text, e.stderr.text
			el.StdoutTruncated, el.StderrTruncated = cmd.StdoutTruncated || !e.stdout.whole(), cmd.StderrTruncated || !e.stderr.whole()
			short = short || el.StdoutTruncated || el.StderrTruncated
			switch {
			case cmd.Error != "":
				line += ": " + cmd.Error
			case cmd.Status != sandbox.CommandRunning:
				line += ": " + e.verdict()
				done++
			}
			for _, s := range e.sections(fmt.Sprintf("[%d] ", i)) {
				if s.body != "" {
					a.sections = append(a.sections, s)
				}
			}
		}
		a.lines = append(a.lines, line+" · "+oneLine(cmd))
	}
	final := json.RawMessage("null")
	if r.State.Ended() {
		var err error
		if final, err = json.Marshal(shape); err != nil {
			final = json.RawMessage("null") // cannot be: all of it is text and numbers
		}
		a.verdict = fmt.Sprintf("run %s: %d of %d commands ran in %s · sandbox %s · run %s",
			r.State, done, len(r.Commands), took(r.EndedAt.Sub(started(r))), r.Identifier, r.ID)
	} else {
		a.verdict = fmt.Sprintf("run %s: it goes on; %d of %d commands have ended · sandbox %s · run %s", r.State, done, len(r.Commands), r.Identifier, r.ID)
		a.lines = append(a.lines, c.nextOf(r)...)
	}
	a.structured = c.runHandle(r, final)
	if r.Error != "" {
		a.lines = append(a.lines, "cause: "+r.Error)
	}
	c.addArtifacts(a, r)
	if short {
		a.notes = append(a.notes, "output was shortened; GET "+shape.StatusURL+" has up to 1 MiB of each stream, or write it to a file with > out.log 2>&1")
	}
	return a
}

func started(r *sandbox.Run) time.Time {
	if r.StartedAt.IsZero() {
		return r.CreatedAt
	}
	return r.StartedAt
}

// endedOf shows a command of a run as any other.
func endedOf(c *sandbox.RunCommand, s *engine.RunStreams, limit int) *ended {
	e := &ended{ExecResult: engine.ExecResult{ProcessID: c.ProcessID, Running: c.EndedAt.IsZero(), Result: agent.Result{
		ExitCode: c.ExitCode, Signal: c.Signal, Cause: c.Cause, Duration: c.EndedAt.Sub(c.StartedAt),
		StdoutBytes: c.StdoutBytes, StderrBytes: c.StderrBytes,
	}}}
	var out, errs capture
	out.add(s.Stdout)
	errs.add(s.Stderr)
	e.show(&out, &errs, limit)
	return e
}

// addArtifacts adds links to the files that were copied out after a run.
func (c *call) addArtifacts(a *answer, r *sandbox.Run) {
	if r.ArtifactsError != "" {
		a.lines = append(a.lines, "artifacts: none were copied out: "+r.ArtifactsError)
	}
	if len(r.Artifacts) == 0 {
		return
	}
	a.lines = append(a.lines, fmt.Sprintf("artifacts (%d, %s):", len(r.Artifacts), bytesText(r.ArtifactBytes)))
	until := time.Now().Add(artifactLife).Truncate(time.Second)
	for i := range r.Artifacts {
		if i == mostMade {
			a.lines = append(a.lines, fmt.Sprintf("  … and %d more; GET %s lists them", len(r.Artifacts)-i, runs.Address(r, "")))
			break
		}
		f := &r.Artifacts[i]
		address := runs.Address(r, f.Path)
		if c.files != nil && c.Address != nil {
			address = runs.Link(c.files, c.Address, r, f.Path, until)
		}
		a.lines = append(a.lines, "  "+printablePath(f.Path)+" ("+bytesText(f.Size)+") "+address)
		a.links = append(a.links, &mcp.ResourceLink{
			URI: address, Name: printablePath(clip(path.Base(f.Path))), MIMEType: mediaOf(f.Path), Size: &f.Size,
		})
	}
}

// artifactLife is how long the links of an answer are good.
const artifactLife = time.Hour

// oneLine shows a command's beginning.
func oneLine(c *sandbox.RunCommand) string {
	s := c.Shell
	if s == "" {
		s = strings.Join(c.Argv, " ")
	}
	return sandbox.Clip(strings.Join(strings.Fields(s), " "), maxShown)
}

// serveRun answers what is below the reserved words of the path: a run's status, and
// its events. It tells whether the request was one.
func (h *Handler) serveRun(w http.ResponseWriter, r *http.Request, caller access.Caller) bool {
	_, rest, _ := strings.Cut(r.URL.Path, "/mcp/")
	word, id, _ := strings.Cut(rest, "/")
	var answer func() error
	switch {
	case word == wordRuns:
		answer = func() error { return h.runStatus(w, r, caller, id) }
	case word == wordEvents && id == "":
		answer = func() error { return h.runEvents(w, r, caller) }
	default:
		return false
	}
	var err error
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		err = guard.WithStatus(http.StatusMethodNotAllowed, fault.New(fault.Invalid, "a run can only be read here").
			WithRemedy("cancel one by POST /v1/runs/{id}/cancel"))
	} else {
		err = answer()
	}
	if err != nil {
		guard.Error(w, r, err)
	}
	return true
}

func (h *Handler) runStatus(w http.ResponseWriter, r *http.Request, caller access.Caller, id string) error {
	run, err := h.engine.RunOf(r.Context(), caller, id)
	if err != nil {
		return err
	}
	streams, err := h.engine.RunStreams(r.Context(), caller, id)
	if err != nil {
		return err
	}
	return writeRun(w, runs.Shape(run, streams, runAddresses))
}

func writeRun(w http.ResponseWriter, run v1.Run) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(run) // the client went away: nothing to tell
	return nil
}

func (h *Handler) runEvents(w http.ResponseWriter, r *http.Request, caller access.Caller) error {
	id := r.URL.Query().Get("run_id")
	if id == "" {
		return fault.InvalidField("run_id", "is missing; a stream of events is one run's").WithRemedy("GET /mcp/events?run_id=RUN")
	}
	return runs.Stream(w, r, h.engine, caller, id, runs.Timing{Heartbeat: h.keepAlive})
}
