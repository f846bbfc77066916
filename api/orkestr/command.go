// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// A command in the background is a process with a label that says who began it.

const (
	backgroundLabel = "orkestr"
	background      = "background"
)

type startCommand struct {
	ID   string `path:"id"`
	Body struct {
		Command string            `json:"command"`
		Cwd     string            `json:"cwd"`
		Env     map[string]string `json:"env"`
	}
}

type commandShape struct {
	ID        string    `json:"id"`
	Command   string    `json:"command"`
	PID       *int      `json:"pid"`
	Status    string    `json:"status"`
	ExitCode  *int      `json:"exit_code"`
	StartedAt time.Time `json:"started_at"`
}

// Statuses of commands.
const (
	commandRunning = "running"
	commandExited  = "exited"
	commandKilled  = "killed"
)

func commandOf(p *sandbox.Process) commandShape {
	out := commandShape{ID: p.ID, Command: p.Shell, Status: commandRunning, StartedAt: p.StartedAt.UTC()}
	if p.PID > 0 {
		out.PID = &p.PID
	}
	switch r := p.Result; {
	case r == nil:
	case r.Signal != "" || r.ExitCode < 0:
		out.Status = commandKilled
	default:
		out.Status, out.ExitCode = commandExited, &r.ExitCode
	}
	return out
}

func (a *API) startCommand(ctx context.Context, c *httpapi.Call, in *startCommand) (commandShape, error) {
	b := &in.Body
	if strings.TrimSpace(b.Command) == "" {
		return commandShape{}, fault.InvalidField("command", "is empty")
	}
	ctx, done := c.Bound(ctx)
	defer done()
	p, err := a.Processes.StartProcess(ctx, c.Caller, in.ID, engine.StartRequest{
		Shell: b.Command, Cwd: b.Cwd, Env: b.Env, MergeOutput: true, Mark: process.Mark{Labels: map[string]string{backgroundLabel: background}},
	})
	if err != nil {
		return commandShape{}, httpapi.Cause(ctx, err)
	}
	return commandOf(&p), nil
}

type commandList struct {
	Commands []commandShape `json:"commands"`
}

// listCommands lists the newest.
func (a *API) listCommands(ctx context.Context, c *httpapi.Call, in *byRef) (commandList, error) {
	page, err := a.Processes.ListProcesses(ctx, c.Caller, in.ID, process.Query{Labels: map[string]string{backgroundLabel: background}, Newest: true, Limit: process.MaxPage})
	out := commandList{Commands: []commandShape{}}
	for i := range page.Items {
		out.Commands = append(out.Commands, commandOf(&page.Items[i]))
	}
	return out, err
}

type byCommand struct {
	ID      string `path:"id"`
	Command string `path:"command"`
}

// command finds one that is in the background.
func (a *API) command(ctx context.Context, c *httpapi.Call, in *byCommand) (sandbox.Process, error) {
	p, err := a.Processes.Process(ctx, c.Caller, in.ID, in.Command)
	if err == nil && p.Labels[backgroundLabel] != background {
		return p, fault.New(fault.NotFound, "there is no command %q", sandbox.Clip(in.Command, 80)).WithRemedy("list the commands to see which there are")
	}
	return p, err
}

func (a *API) getCommand(ctx context.Context, c *httpapi.Call, in *byCommand) (commandShape, error) {
	p, err := a.command(ctx, c, in)
	return commandOf(&p), err
}

// killCommand ends a command with all that it began; one that has ended may be ended again.
func (a *API) killCommand(ctx context.Context, c *httpapi.Call, in *byCommand) (httpapi.None, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	p, err := a.command(ctx, c, in)
	if err != nil || p.Result != nil {
		return httpapi.None{}, httpapi.Cause(ctx, err)
	}
	return httpapi.None{}, httpapi.Cause(ctx, a.Processes.KillProcess(ctx, c.Caller, in.ID, p.ID))
}

type commandLogs struct {
	byCommand
	Offset  *int64   `query:"offset"`
	Follow  *bool    `query:"follow"`
	Timeout *float64 `query:"timeout_seconds"`
}

type logsShape struct {
	Content   string `json:"content"`
	Size      int64  `json:"size"`
	Truncated bool   `json:"truncated"`
}

// maxLogs is how many bytes of a log an answer has.
const maxLogs = 1 << 20

// Following bounds.
const (
	defaultFollow = 300 * time.Second
	maxFollow     = time.Hour
)

// commandLogs answers with what a command wrote, both of whose streams are one: from a byte on, or as it comes.
func (a *API) commandLogs(ctx context.Context, c *httpapi.Call, in *commandLogs) error {
	offset := given(in.Offset)
	if offset < 0 {
		return fault.InvalidField("offset", "%d is less than 0", offset)
	}
	ctx, done := c.Bound(ctx)
	defer done()
	p, err := a.command(ctx, c, &in.byCommand)
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	if given(in.Follow) {
		return a.followCommand(ctx, c, in, p.ID, offset)
	}
	f, err := a.Processes.Follow(ctx, c.Caller, in.ID, p.ID, engine.FollowRequest{Once: true})
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	defer f.Close()
	if err := c.Reserve(ctx, 3*maxLogs); err != nil {
		return err
	}
	var kept []byte
	var size int64
	_, err = f.Run(ctx, engine.FollowSink{Frame: func(fr sandbox.Frame) error {
		begin := max(0, offset-size)
		size += int64(len(fr.Data))
		if begin < int64(len(fr.Data)) && len(kept) < maxLogs {
			kept = append(kept, fr.Data[begin:]...)
		}
		return nil
	}})
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	if len(kept) > maxLogs {
		kept = wholeRunes(kept[:maxLogs]) // the next answer begins with the character that would be cut
	}
	return c.Answer(logsShape{strings.ToValidUTF8(string(kept), "\uFFFD"), size, offset+int64(len(kept)) < size})
}

// wholeRunes takes off an end that is the beginning of a character.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

func (a *API) followCommand(ctx context.Context, c *httpapi.Call, in *commandLogs, id string, offset int64) error {
	limit := defaultFollow
	if t := in.Timeout; t != nil {
		if !(*t > 0 && *t <= maxFollow.Seconds()) {
			return fault.InvalidField("timeout_seconds", "%v is not more than 0 and at most %v", *t, maxFollow.Seconds())
		}
		limit = time.Duration(*t * float64(time.Second))
	}
	over, stop := context.WithTimeoutCause(ctx, limit, fault.New(fault.Timeout, "the following ended after %v; the command goes on", limit).WithRemedy("follow it again from an offset"))
	defer stop()
	f, err := a.Processes.Follow(over, c.Caller, in.ID, id, engine.FollowRequest{})
	if err != nil {
		return httpapi.Cause(over, err)
	}
	defer f.Close()
	s := c.Events()
	defer s.Close()
	started := startedFrame{Kind: kindStarted}
	if p := f.Record(); p.PID > 0 {
		started.PID = &p.PID
	}
	if err := s.Send(kindStarted, 0, started); err != nil {
		return nil // the client went away
	}
	end, err := f.Run(over, engine.FollowSink{Frame: func(fr sandbox.Frame) error {
		skip := min(offset, int64(len(fr.Data)))
		offset -= skip
		if fr.Data = fr.Data[skip:]; len(fr.Data) == 0 {
			return nil
		}
		return s.Send(kindChunk, 0, chunkOf(fr))
	}})
	if err != nil {
		return s.Fail(httpapi.Cause(over, err))
	}
	s.End()
	_ = s.Send(kindExited, 0, exitedFrame{kindExited, end.Result.ExitCode, end.Result.Duration.Milliseconds()}) // the client went away: nothing to tell
	return nil
}
