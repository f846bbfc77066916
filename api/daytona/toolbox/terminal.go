// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Labels of a terminal: its id, and the size that it began with.
const (
	terminalLabel = "daytona-pty"
	sizeLabel     = "daytona-pty-size"
)

const (
	defaultCols, defaultRows = 80, 24
	maxSize                  = 1000
	maxEnvs                  = 64 << 10 // bytes of variables in a subprotocol
	recentScreen             = 64 << 10 // bytes of what a terminal has shown, for who joins it
)

// exitControl is the subprotocol by which a client asks for a message with the exit code.
const exitControl = "X-Daytona-Pty-Exit-Control"

// envsProtocol begins a subprotocol that has variables.
const envsProtocol = "X-Daytona-Pty-Envs~"

type byTerminal struct {
	Ref      string `path:"id"`
	Terminal string `path:"terminal"`
}

// terminal returns the running terminal with an id, or else the last one that had it.
func (a *API) terminal(ctx context.Context, c *httpapi.Call, in *byTerminal) (sandbox.Process, error) {
	page, err := a.Processes.ListProcesses(ctx, c.Caller, in.Ref, process.Query{Labels: map[string]string{terminalLabel: in.Terminal}, Newest: true, Limit: 1})
	if err != nil {
		return sandbox.Process{}, err
	}
	if len(page.Items) == 0 {
		return sandbox.Process{}, fault.New(fault.NotFound, "there is no terminal %q", sandbox.Clip(in.Terminal, 80)).WithReason(wire.CodeProcessNotFound)
	}
	return page.Items[0], nil
}

func terminalOf(p *sandbox.Process) wire.Terminal {
	out := wire.Terminal{ID: p.Labels[terminalLabel], Cwd: p.Cwd, Envs: map[string]string{}, CreatedAt: p.StartedAt.UTC(), Active: p.Result == nil}
	cols, rows, _ := strings.Cut(p.Labels[sizeLabel], "x")
	out.Cols, _ = strconv.Atoi(cols) // of who made it
	out.Rows, _ = strconv.Atoi(rows)
	return out
}

func (a *API) listTerminals(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Terminals, error) {
	page, err := a.Processes.ListProcesses(ctx, c.Caller, in.Ref, process.Query{Running: true, Tty: true, Limit: process.MaxPage})
	out := wire.Terminals{Sessions: []wire.Terminal{}}
	for i := range page.Items {
		if page.Items[i].Labels[terminalLabel] != "" {
			out.Sessions = append(out.Sessions, terminalOf(&page.Items[i]))
		}
	}
	return out, err
}

func (a *API) getTerminal(ctx context.Context, c *httpapi.Call, in *byTerminal) (wire.Terminal, error) {
	p, err := a.terminal(ctx, c, in)
	if err != nil {
		return wire.Terminal{}, err
	}
	return terminalOf(&p), nil
}

func (a *API) killTerminal(ctx context.Context, c *httpapi.Call, in *byTerminal) (wire.Nothing, error) {
	p, err := a.terminal(ctx, c, in)
	if err != nil || p.Result != nil {
		return wire.Nothing{}, err
	}
	return wire.Nothing{}, a.Processes.KillProcess(ctx, c.Caller, in.Ref, p.ID)
}

type resizeTerminal struct {
	byTerminal
	Body wire.TerminalSize
}

func (a *API) resizeTerminal(ctx context.Context, c *httpapi.Call, in *resizeTerminal) (wire.Terminal, error) {
	cols, rows, err := sizeOf(&in.Body.Cols, &in.Body.Rows)
	if err != nil {
		return wire.Terminal{}, err
	}
	p, err := a.terminal(ctx, c, &in.byTerminal)
	if err != nil {
		return wire.Terminal{}, err
	}
	if p.Result != nil {
		return wire.Terminal{}, guard.WithStatus(http.StatusGone, fault.New(fault.State, "the terminal %s has ended", sandbox.Clip(in.Terminal, 80)).WithReason(wire.CodeSessionEnded))
	}
	if err := a.Processes.ResizeProcess(ctx, c.Caller, in.Ref, p.ID, cols, rows); err != nil {
		return wire.Terminal{}, err
	}
	out := terminalOf(&p)
	out.Cols, out.Rows = cols, rows
	return out, nil
}

// sizeOf checks a size; nil: the default.
func sizeOf(cols, rows *int) (int, int, error) {
	c, r := defaultCols, defaultRows
	var bad []fault.Field
	for _, one := range []struct {
		name string
		n    *int
		into *int
	}{{"cols", cols, &c}, {"rows", rows, &r}} {
		switch {
		case one.n == nil:
		case *one.n < 1 || *one.n > maxSize:
			bad = append(bad, fault.Field{Name: one.name, Message: strconv.Itoa(*one.n) + " is outside 1 to " + strconv.Itoa(maxSize)})
		default:
			*one.into = *one.n
		}
	}
	if len(bad) > 0 {
		return 0, 0, fault.InvalidFields(bad...)
	}
	return c, r, nil
}

// startTerminal starts a login shell at a terminal that stays.
func (a *API) startTerminal(ctx context.Context, c *httpapi.Call, ref string, b *wire.CreateTerminal) (sandbox.Process, error) {
	id := httpapi.Given(b.ID)
	if id == "" {
		return sandbox.Process{}, fault.InvalidField("id", "is missing")
	}
	cols, rows, err := sizeOf(b.Cols, b.Rows)
	if err != nil {
		return sandbox.Process{}, err
	}
	r := engine.TerminalRequest{}
	return a.Processes.StartProcess(ctx, c.Caller, ref, engine.StartRequest{
		Shell: r.ShellText(), Cwd: httpapi.Given(b.Cwd), Env: b.Envs,
		Terminal: &engine.TerminalSize{Cols: uint16(cols), Rows: uint16(rows)},
		Mark:     process.Mark{Name: id, Labels: map[string]string{terminalLabel: id, sizeLabel: strconv.Itoa(cols) + "x" + strconv.Itoa(rows)}},
	})
}

type createTerminal struct {
	Ref  string `path:"id"`
	Body wire.CreateTerminal
}

func (a *API) createTerminal(ctx context.Context, c *httpapi.Call, in *createTerminal) (wire.TerminalMade, error) {
	_, err := a.startTerminal(ctx, c, in.Ref, &in.Body)
	return wire.TerminalMade{SessionID: httpapi.Given(in.Body.ID)}, err
}

type connectNew struct {
	Ref  string  `path:"id"`
	ID   *string `query:"id"`
	Cwd  *string `query:"cwd"`
	Cols *int    `query:"cols"`
	Rows *int    `query:"rows"`
}

// connectNew starts a terminal and joins it, over one WebSocket. Errors are sent as messages.
func (a *API) connectNew(ctx context.Context, c *httpapi.Call, in *connectNew) error {
	if err := needSocket(c.R); err != nil {
		return err
	}
	b := wire.CreateTerminal{ID: in.ID, Cwd: in.Cwd, Cols: in.Cols, Rows: in.Rows}
	if text, ok := offer(c.R, envsProtocol); ok {
		envs, err := envsOf(text)
		if err != nil {
			return err
		}
		b.Envs = envs
	}
	p, err := a.startTerminal(ctx, c, in.Ref, &b)
	if err != nil {
		return err
	}
	return a.join(ctx, c, in.Ref, p.ID, 0)
}

// envsOf reads variables of a subprotocol: an object in JSON, in base64url without padding.
func envsOf(text string) (envs map[string]string, err error) {
	bad := func() error {
		return fault.InvalidField("envs", "in a subprotocol are %s, not a JSON object of strings in base64url, of %d bytes at most", sandbox.Clip(text, 40), maxEnvs)
	}
	if len(text) > base64.RawURLEncoding.EncodedLen(maxEnvs) {
		return nil, bad()
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &envs) != nil {
		return nil, bad()
	}
	return envs, nil
}

func (a *API) connectTerminal(ctx context.Context, c *httpapi.Call, in *byTerminal) error {
	if err := needSocket(c.R); err != nil {
		return err
	}
	p, err := a.terminal(ctx, c, in)
	if err != nil {
		return err
	}
	return a.join(ctx, c, in.Ref, p.ID, recentScreen)
}

func needSocket(r *http.Request) error {
	if asksForSocket(r) {
		return nil
	}
	return fault.New(fault.Malformed, "a terminal needs a WebSocket, and the request is not an upgrade to one")
}

// join carries bytes both ways between a client and a terminal, which outlives the connection.
func (a *API) join(ctx context.Context, c *httpapi.Call, ref, id string, recent int64) error {
	g, err := a.Processes.Follow(ctx, c.Caller, ref, id, engine.FollowRequest{Recent: recent})
	if err != nil {
		return err
	}
	defer g.Close()
	_, tells := offer(c.R, exitControl)
	c.UpgradeAs(ctx, maxMessage, offered(c.R), func(ctx context.Context, conn *websocket.Conn) {
		j := &joined{API: a, c: c, conn: conn, ref: ref, id: id, tells: tells}
		j.serve(ctx, g)
	})
	return nil
}

// joined is a client at a terminal.
type joined struct {
	*API
	c       *httpapi.Call
	conn    *websocket.Conn
	ref, id string
	tells   bool // the client wants a message of the exit
}

func (j *joined) serve(ctx context.Context, g *engine.Following) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	steady := context.WithoutCancel(ctx) // a context that ends breaks a connection, and with it the last words
	if j.control(steady, wire.Control{Status: "connected"}) != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { defer cancel(); j.read(ctx, steady) })
	end, err := g.Run(ctx, engine.FollowSink{Frame: func(f sandbox.Frame) error {
		return write(steady, j.conn, websocket.MessageBinary, f.Data, j.c.Stall())
	}})
	last, bye := context.WithTimeout(steady, goodbye)
	defer bye()
	switch {
	case err == nil && end.Ended:
		exit := wire.Exit{ExitCode: end.Result.ExitCode, Reason: string(end.Result.Cause)}
		if j.tells {
			_ = j.control(last, wire.Control{Status: "exited", ExitCode: &exit.ExitCode, Reason: exit.Reason})
		}
		text, _ := json.Marshal(exit) // numbers and plain words
		_ = j.conn.Close(websocket.StatusNormalClosure, string(text))
	default:
		_ = j.conn.Close(websocket.StatusGoingAway, "")
	}
	cancel()
	_ = j.conn.CloseNow()
	wg.Wait()
}

func (j *joined) control(ctx context.Context, m wire.Control) error {
	m.Type = "control"
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return write(ctx, j.conn, websocket.MessageText, text, j.c.Stall())
}

// read writes what the client types to the terminal, in order.
func (j *joined) read(ctx, steady context.Context) {
	for {
		_, data, err := j.conn.Read(steady)
		if err != nil {
			return
		}
		for len(data) > 0 {
			n := min(len(data), engine.MaxInput)
			taken, err := j.Processes.WriteInput(ctx, j.c.Caller, j.ref, j.id, engine.InputRequest{Data: data[:n], Offset: -1, Wait: time.Hour})
			if err != nil {
				return
			}
			data = data[taken.Bytes:]
		}
	}
}
