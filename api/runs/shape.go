// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// Root is where artifacts are: Root, the sandbox's key or id, "/", the run's id or
// latest, "/", the path.
const Root = "/artifacts/"

// Addresses are the paths below which a coat has runs: {id} stands for the run's.
type Addresses struct{ Status, Events string }

// Shape is a run as clients see it. streams are those of its commands; nil: they are
// left out.
func Shape(r *sandbox.Run, streams []runs.Streams, at Addresses) v1.Run {
	out := v1.Run{
		RunID: r.ID, Identifier: r.Identifier, State: string(r.State), CreatedAt: r.CreatedAt.UTC(),
		StartedAt: timeOrNull(r.StartedAt), EndedAt: timeOrNull(r.EndedAt),
		SandboxID: string(r.Sandbox), SandboxName: r.Identifier, Artifacts: []v1.Artifact{},
		ArtifactsError: r.ArtifactsError, Error: r.Error,
		StatusURL: strings.ReplaceAll(at.Status, "{id}", r.ID), EventsURL: strings.ReplaceAll(at.Events, "{id}", r.ID),
		ArtifactsURL: Address(r, ""),
	}
	for _, a := range r.Artifacts {
		out.Artifacts = append(out.Artifacts, v1.Artifact{Path: a.Path, Size: a.Size, SHA256: a.SHA256, URL: Address(r, a.Path)})
	}
	for i := range r.Commands {
		var s runs.Streams
		if streams != nil {
			s = streams[i]
		}
		out.Commands = append(out.Commands, command(i, &r.Commands[i], s))
	}
	return out
}

func command(i int, c *sandbox.RunCommand, s runs.Streams) v1.RunCommand {
	out := v1.RunCommand{
		Index: i, Shell: c.Shell, Argv: c.Argv, Cwd: c.Cwd, AllowFailure: c.AllowFailure, Status: string(c.Status),
		Signal: c.Signal, Cause: string(c.Cause), Error: c.Error, ProcessID: c.ProcessID,
		StartedAt: timeOrNull(c.StartedAt), EndedAt: timeOrNull(c.EndedAt),
		StdoutBytes: c.StdoutBytes, StderrBytes: c.StderrBytes, StdoutTruncated: c.StdoutTruncated, StderrTruncated: c.StderrTruncated,
		Stdout: strings.ToValidUTF8(string(s.Stdout), "\ufffd"), Stderr: strings.ToValidUTF8(string(s.Stderr), "\ufffd"),
	}
	if !c.EndedAt.IsZero() {
		code := c.ExitCode
		out.ExitCode = &code
	}
	if len(c.Env) > 0 {
		out.Env = make(map[string]string, len(c.Env))
		for n := range c.Env {
			out.Env[n] = hidden
		}
	}
	return out
}

// hidden stands for the value of a variable, which may be a secret.
const hidden = "(hidden)"

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Address is the path of an artifact of a run; of the directory, for "".
func Address(r *sandbox.Run, path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return Root + url.PathEscape(r.Identifier) + "/" + r.ID + "/" + strings.Join(parts, "/")
}

// data is what an event tells. What it says beside the event itself is in the run's
// record since.
func data(r *sandbox.Run, ev *sandbox.RunEvent) any {
	var c sandbox.RunCommand
	if ev.Command < len(r.Commands) {
		c = r.Commands[ev.Command]
	}
	switch ev.Type {
	case sandbox.RunStarted:
		return v1.RunStarted{RunID: r.ID, Identifier: r.Identifier, SandboxID: string(r.Sandbox), StartedAt: r.StartedAt.UTC()}
	case sandbox.RunCommandStarted:
		return v1.CommandStarted{RunID: r.ID, Index: ev.Command, Shell: c.Shell, Argv: c.Argv, Cwd: c.Cwd, StartedAt: c.StartedAt.UTC()}
	case sandbox.RunCommandStdout, sandbox.RunCommandStderr:
		out := v1.CommandOutput{RunID: r.ID, Index: ev.Command, Chunk: strings.ToValidUTF8(string(ev.Data), "\ufffd"), Truncated: ev.Truncated}
		if !utf8.Valid(ev.Data) {
			out.Base64 = ev.Data
		}
		return out
	case sandbox.RunCommandFinished:
		return v1.CommandFinished{
			RunID: r.ID, Index: ev.Command, ExitCode: c.ExitCode, Status: string(c.Status), Cause: string(c.Cause), Error: c.Error,
			StdoutTruncated: c.StdoutTruncated, StderrTruncated: c.StderrTruncated, EndedAt: c.EndedAt.UTC(),
		}
	case sandbox.RunExtracted:
		return v1.ArtifactsExtracted{RunID: r.ID, Count: len(r.Artifacts)}
	}
	return v1.RunEnded{RunID: r.ID, State: string(r.State), EndedAt: r.EndedAt.UTC(), Error: r.Error}
}
