// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/api/daytona/release"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// sessionLabel is the label of the commands of a session: its name.
const sessionLabel = "daytona-session"

// bySession is the input of operations on a session, which is a shell by its name.
type bySession struct {
	Ref     string `path:"id"`
	Session string `path:"session"`
}

type createSession struct {
	Ref  string `path:"id"`
	Body wire.CreateSession
}

func (a *API) createSession(ctx context.Context, c *httpapi.Call, in *createSession) (httpapi.None, error) {
	if in.Body.SessionID == "" {
		return httpapi.None{}, fault.InvalidField("sessionId", "is missing")
	}
	if in.Body.SessionID == entrypointSession {
		return httpapi.None{}, fault.New(fault.Exists, "the session %q is that of the sandbox's start command", entrypointSession).WithRemedy("choose another sessionId")
	}
	_, err := a.Shells.CreateShell(ctx, c.Caller, in.Ref, code.ShellRequest{Name: in.Body.SessionID})
	return httpapi.None{}, err
}

func (a *API) listSessions(ctx context.Context, c *httpapi.Call, in *byRef) ([]wire.Session, error) {
	all, err := a.Shells.Shells(ctx, c.Caller, in.Ref)
	if err != nil {
		return nil, err
	}
	out := make([]wire.Session, 0, len(all))
	for _, s := range all {
		commands, err := a.commands(ctx, c, in.Ref, s.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, wire.Session{SessionID: s.Name, Commands: commands})
	}
	return out, nil
}

func (a *API) getSession(ctx context.Context, c *httpapi.Call, in *bySession) (wire.Session, error) {
	if _, err := a.Shells.Shell(ctx, c.Caller, in.Ref, in.Session); err != nil {
		return wire.Session{}, err
	}
	commands, err := a.commands(ctx, c, in.Ref, in.Session)
	return wire.Session{SessionID: in.Session, Commands: commands}, err
}

func (a *API) deleteSession(ctx context.Context, c *httpapi.Call, in *bySession) (httpapi.None, error) {
	return httpapi.None{}, a.Shells.DeleteShell(ctx, c.Caller, in.Ref, in.Session)
}

// commands are those of a session, oldest first: as many as are kept, to the engine's bound.
func (a *API) commands(ctx context.Context, c *httpapi.Call, ref, session string) ([]wire.Command, error) {
	waiting, err := a.Shells.ShellQueued(ctx, c.Caller, ref, session) // first: one that begins meanwhile is in both
	if err != nil {
		return nil, err
	}
	page, err := a.Processes.ListProcesses(ctx, c.Caller, ref, process.Query{Labels: map[string]string{sessionLabel: session}, Limit: process.MaxPage})
	if err != nil {
		return nil, err
	}
	out := make([]wire.Command, 0, len(page.Items)+len(waiting))
	for i := range page.Items {
		out = append(out, commandOf(&page.Items[i]))
	}
	for _, w := range waiting {
		if !slices.ContainsFunc(page.Items, func(p sandbox.Process) bool { return p.ID == w.ID }) {
			out = append(out, wire.Command{ID: w.ID, Command: w.Command})
		}
	}
	return out, nil
}

func commandOf(p *sandbox.Process) wire.Command {
	out := wire.Command{ID: p.ID, Command: p.Shell}
	if p.Result != nil {
		out.ExitCode = &p.Result.ExitCode
	}
	return out
}

type sessionExec struct {
	bySession
	Body wire.SessionExecute
}

// sessionExec runs a command line in a session's shell. With runAsync it answers at once, and the command runs after those before it.
func (a *API) sessionExec(ctx context.Context, c *httpapi.Call, in *sessionExec) (wire.SessionExecuted, error) {
	b := &in.Body
	if strings.TrimSpace(b.Command) == "" {
		return wire.SessionExecuted{}, fault.InvalidField("command", "is empty")
	}
	r := engine.ExecRequest{
		Shell: b.Command, Timeout: a.Server.MostCommandTime(), MaxStdout: maxOutput / 2, MaxStderr: maxOutput / 2, Room: c.Room,
		Mark: process.Mark{Labels: map[string]string{sessionLabel: in.Session}},
	}
	async := b.RunAsync != nil && *b.RunAsync || b.Async != nil && *b.Async
	if _, err := a.Shells.Shell(ctx, c.Caller, in.Ref, in.Session); err != nil { // a command would make it
		return wire.SessionExecuted{}, err
	}
	if async {
		c.Status, r.StreamStdin = http.StatusAccepted, true
		id, err := a.Shells.ShellQueue(ctx, c.Caller, in.Ref, in.Session, r)
		return wire.SessionExecuted{CommandID: id}, err
	}
	res, err := a.Shells.ShellExec(ctx, c.Caller, in.Ref, in.Session, r, nil)
	if err != nil {
		return wire.SessionExecuted{}, err
	}
	stdout, stderr := string(res.Stdout), string(res.Stderr)
	out := wire.SessionExecuted{CommandID: res.ProcessID, Stdout: &stdout, Stderr: &stderr, Output: new(stdout + stderr), ExitCode: &res.ExitCode}
	if release.MarksOutput(release.Of(c.R)) {
		out.Output = new(string(mark(sandbox.Stdout)) + stdout + string(mark(sandbox.Stderr)) + stderr)
	}
	return out, nil
}

// byCommand is the input of operations on a command of a session.
type byCommand struct {
	bySession
	Command string `path:"command"`
}

// command returns a command, if it is one of the session.
func (a *API) command(ctx context.Context, c *httpapi.Call, in *byCommand) (sandbox.Process, error) {
	var p sandbox.Process
	var has bool
	var err error
	if in.Session == entrypointSession {
		p, err = a.startCommand(ctx, c, in.Ref)
		has = p.ID == in.Command
	} else {
		p, err = a.Processes.Process(ctx, c.Caller, in.Ref, in.Command)
		has = p.Labels[sessionLabel] == in.Session
	}
	if err == nil && !has {
		err = fault.New(fault.NotFound, "the session %q has no command %q", sandbox.Clip(in.Session, 80), sandbox.Clip(in.Command, 80))
	}
	if fault.Is(err, fault.NotFound) && fault.ReasonOf(err) == "" { // and it is not the sandbox
		err = withCode(err, wire.CodeProcessNotFound)
	}
	return p, err
}

func (a *API) getCommand(ctx context.Context, c *httpapi.Call, in *byCommand) (wire.Command, error) {
	p, err := a.command(ctx, c, in)
	if err != nil {
		return wire.Command{}, err
	}
	return commandOf(&p), nil
}

type commandInput struct {
	byCommand
	Body wire.Input
}

func (a *API) commandInput(ctx context.Context, c *httpapi.Call, in *commandInput) (httpapi.None, error) {
	p, err := a.command(ctx, c, &in.byCommand)
	if err != nil {
		return httpapi.None{}, err
	}
	if p.Result != nil {
		return httpapi.None{}, guard.WithStatus(http.StatusGone, fault.New(fault.State, "the command %s has ended", p.ID).WithReason(wire.CodeCommandCompleted))
	}
	_, err = a.Processes.WriteInput(ctx, c.Caller, in.Ref, p.ID, engine.InputRequest{Data: []byte(in.Body.Data), Offset: -1})
	return httpapi.None{}, err
}

type commandLogs struct {
	byCommand
	Follow *bool `query:"follow"`
}

// commandLogs answers with what a command has written by now, or follows it over a WebSocket.
func (a *API) commandLogs(ctx context.Context, c *httpapi.Call, in *commandLogs) error {
	p, err := a.command(ctx, c, &in.byCommand)
	if err != nil {
		return err
	}
	waiting, err := a.waits(ctx, c, in)
	if err != nil {
		return err
	}
	if !waiting {
		return a.processLogs(ctx, c, in.Ref, &p)
	}
	if !asksForSocket(c.R) {
		return new(logs).answer(c)
	}
	c.UpgradeAs(ctx, maxMessage, offered(c.R), func(ctx context.Context, conn *websocket.Conn) {
		var g *engine.Following
		followLogs(ctx, conn, c.Stall(), func(ctx context.Context) (_ *engine.Following, err error) {
			if err = a.Shells.AwaitCommand(ctx, c.Caller, in.Ref, in.Session, p.ID); err == nil {
				g, err = a.Processes.Follow(ctx, c.Caller, in.Ref, p.ID, engine.FollowRequest{})
			}
			return g, err
		})
		if g != nil {
			g.Close()
		}
	})
	return nil
}

// processLogs answers with what a process has written by now, or follows it over a WebSocket. One that never began has written
// nothing, and is known to the records alone.
func (a *API) processLogs(ctx context.Context, c *httpapi.Call, ref string, p *sandbox.Process) error {
	socket := asksForSocket(c.R)
	g, err := a.Processes.Follow(ctx, c.Caller, ref, p.ID, engine.FollowRequest{Once: !socket})
	switch {
	case err == nil:
		defer g.Close()
	case !fault.Is(err, fault.NotFound) || fault.ReasonOf(err) != "":
		return err
	case p.Result == nil || p.Result.StdoutBytes+p.Result.StderrBytes > 0:
		return withCode(err, wire.CodeProcessNotFound)
	case !socket:
		return new(logs).answer(c)
	}
	if socket {
		c.UpgradeAs(ctx, maxMessage, offered(c.R), func(ctx context.Context, conn *websocket.Conn) {
			followLogs(ctx, conn, c.Stall(), func(context.Context) (*engine.Following, error) { return g, nil })
		})
		return nil
	}
	ctx, done := c.Bound(ctx)
	defer done()
	var out logs
	if _, err := g.Run(ctx, engine.FollowSink{Frame: out.add}); err != nil {
		return httpapi.Cause(ctx, err)
	}
	return out.answer(c)
}

// logs collects what a command has written.
type logs struct{ both, stdout, stderr, marked []byte }

// maxLogs bounds logs that are answered at once, in bytes. They are followed over a socket without one.
const maxLogs = 64 << 20

func (l *logs) add(f sandbox.Frame) error {
	if len(l.both)+len(f.Data) > maxLogs {
		return fault.New(fault.TooLarge, "the logs have more than %d bytes", maxLogs).WithRemedy("follow them: clients do so with a callback for logs")
	}
	l.both = append(l.both, f.Data...)
	l.marked = append(append(l.marked, mark(f.Stream)...), f.Data...)
	if f.Stream == sandbox.Stderr {
		l.stderr = append(l.stderr, f.Data...)
	} else {
		l.stdout = append(l.stdout, f.Data...)
	}
	return nil
}

// mark returns the bytes that precede output of a stream where both streams are sent as one.
func mark(s sandbox.Stream) []byte {
	if s == sandbox.Stderr {
		return []byte{2, 2, 2}
	}
	return []byte{1, 1, 1}
}

// answer answers in the form that the client's version reads: an object from 0.167 on; one text with marks from 0.27 on; one text without
// marks for older clients, and for those that send no version.
func (l *logs) answer(c *httpapi.Call) error {
	version := release.Of(c.R)
	if version == "" && c.R.Header.Get("X-Daytona-Split-Output") == "true" || strings.Contains(version, "dev") || version != "" && !release.Before(version, 0, 167) {
		return c.Answer(wire.Logs{Output: string(l.both), Stdout: string(l.stdout), Stderr: string(l.stderr)})
	}
	text := l.both
	if release.MarksOutput(version) {
		text = l.marked
	}
	h := c.W.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	c.W.WriteHeader(http.StatusOK)
	w := c.StallWriter()
	defer w.Close()
	_, err := w.Write(text)
	return err
}

// waits reports whether a command has yet to have its turn.
func (a *API) waits(ctx context.Context, c *httpapi.Call, in *commandLogs) (bool, error) {
	all, err := a.Shells.ShellQueued(ctx, c.Caller, in.Ref, in.Session)
	if fault.Is(err, fault.NotFound) { // a session that is deleted leaves its commands
		return false, nil
	}
	return slices.ContainsFunc(all, func(q code.Queued) bool { return q.ID == in.Command }), err
}

// followLogs sends what a command writes, each piece behind its stream's mark, until it has ended. open returns what is
// followed, as soon as the command has begun; nil: it wrote nothing.
func followLogs(ctx context.Context, conn *websocket.Conn, stall time.Duration, open func(context.Context) (*engine.Following, error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	steady := context.WithoutCancel(ctx) // a context that ends breaks a connection
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		for { // pongs are read so
			if _, _, err := conn.Read(steady); err != nil {
				return
			}
		}
	}()
	g, err := open(ctx)
	if err == nil && g != nil {
		_, err = g.Run(ctx, engine.FollowSink{Frame: func(f sandbox.Frame) error {
			return write(steady, conn, websocket.MessageBinary, append(mark(f.Stream), f.Data...), stall)
		}})
	}
	status := websocket.StatusNormalClosure
	if err != nil {
		status = websocket.StatusGoingAway
	}
	_ = conn.Close(status, "")
	_ = conn.CloseNow()
	<-gone
}
