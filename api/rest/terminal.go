// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

type openTerminal struct {
	Ref     string  `path:"id" doc:"the sandbox's id or key"`
	Command *string `query:"command" doc:"shell text; the default is a login shell"`
	Cols    *int    `query:"cols" doc:"1 to 1000; default 80"`
	Rows    *int    `query:"rows" doc:"1 to 1000; default 24"`
	Term    *string `query:"term" doc:"the kind of terminal; default xterm-256color"`
	User    *string `query:"user" doc:"an account of the sandbox, by name or number; left out: its own user"`
	AsUser  *string `query:"as_user" doc:"the same as user"`
	Cwd     *string `query:"cwd" doc:"where it starts; default /workspace, as root /root"`
	Stays   *bool   `query:"stays" doc:"true: it belongs to the sandbox and outlives this connection, see listTerminals; the default is to hang up when the connection ends"`
}

// Bounds of terminals.
const (
	maxTermSize    = 1000
	maxTermMessage = 1 << 20          // bytes of one message from the client
	byeTimeout     = 15 * time.Second // of the last words
)

func (a *API) openTerminal(ctx context.Context, c *idempotency.Call, in *openTerminal) error {
	var sp httpapi.Spellings
	r := engine.TerminalRequest{
		Shell: httpapi.Given(in.Command), Term: httpapi.Given(in.Term), Cwd: httpapi.Given(in.Cwd),
		User: httpapi.Given(httpapi.Either(&sp, "as_user", in.AsUser, "user", in.User)),
		Cols: termSize(&sp, "cols", in.Cols), Rows: termSize(&sp, "rows", in.Rows),
	}
	if err := sp.Err(); err != nil {
		return err
	}
	// A terminal is begun before the client is answered, so that what is wrong
	// with it is an HTTP answer; so it must be sure that a WebSocket will follow.
	if !strings.EqualFold(c.R.Header.Get("Upgrade"), "websocket") {
		c.W.Header().Set("Upgrade", "websocket")
		return guard.WithStatus(http.StatusUpgradeRequired,
			fault.New(fault.Malformed, "a terminal is a WebSocket, and the request asks for none").
				WithRemedy("connect with a WebSocket client, or run sandpit shell"))
	}
	if in.Stays != nil && *in.Stays {
		return sp.Rename(a.openStaying(ctx, c, in.Ref, r))
	}
	t, err := a.Processes.Terminal(ctx, c.Caller, in.Ref, r)
	if err != nil {
		return sp.Rename(err)
	}
	defer t.Close()
	c.W.Header().Set(v1.ProcessHeader, t.ID())
	c.Upgrade(ctx, maxTermMessage, func(ctx context.Context, conn *websocket.Conn) { serveTerminal(ctx, conn, t, c.Stall()) })
	return nil
}

func termSize(sp *httpapi.Spellings, name string, n *int) uint16 {
	if n == nil {
		return 0
	}
	if *n < 1 || *n > maxTermSize {
		sp.Add(name, "%d is outside 1 to %d", *n, maxTermSize)
		return 0
	}
	return uint16(*n)
}

// serveTerminal carries bytes both ways until the command ends, the client goes
// away or the server stops.
func serveTerminal(ctx context.Context, conn *websocket.Conn, t *engine.Terminal, stall time.Duration) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A context that ends breaks the connection, and with it the last words: so
	// reading and writing get one that does not, and closing ends them.
	steady := context.WithoutCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { cancel(readTerminal(steady, conn, t)) })
	err := writeTerminal(ctx, conn, t, stall)
	last, bye := context.WithTimeout(steady, byeTimeout)
	defer bye()
	switch {
	case err == nil:
		res := t.Result()
		_ = control(last, conn, v1.TerminalControl{Exit: &v1.TerminalExit{
			ExitCode: res.ExitCode, Signal: res.Signal, Cause: string(res.Cause), CauseDetail: res.CauseDetail,
			SignaledBy: res.Signaled.By, SignaledWith: res.Signaled.With,
		}})
		_ = conn.Close(websocket.StatusNormalClosure, "")
	default:
		p, _ := guard.Problem(httpapi.Cause(ctx, err), guard.RequestID(ctx))
		_ = control(last, conn, v1.TerminalControl{Error: &p})
		_ = conn.Close(websocket.StatusGoingAway, "")
	}
	cancel(nil)
	_ = conn.CloseNow()
	wg.Wait()
}

// writeTerminal sends what the command shows; nil when it has ended.
func writeTerminal(ctx context.Context, conn *websocket.Conn, t *engine.Terminal, stall time.Duration) error {
	for {
		f, err := t.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stall)
		err = conn.Write(wctx, websocket.MessageBinary, f.Data)
		cancel()
		if err != nil {
			return fault.Wrap(fault.Canceled, err, "the client has gone")
		}
	}
}

// readTerminal hands on what the client types and asks for.
func readTerminal(ctx context.Context, conn *websocket.Conn, t *engine.Terminal) error {
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return fault.Wrap(fault.Canceled, err, "the client has gone")
		}
		if kind == websocket.MessageBinary {
			if _, err := t.Write(data); err != nil {
				return err
			}
			continue
		}
		if err := obey(data, t); err != nil {
			return err
		}
	}
}

// obey does what a control message says. One that cannot be read ends the
// terminal: a client that sends such does not do what its user thinks.
func obey(data []byte, t *engine.Terminal) error {
	var m v1.TerminalControl
	if err := json.Unmarshal(data, &m); err != nil {
		return fault.New(fault.Malformed, "the control message %q is not JSON of the known form", sandbox.Clip(string(data), 80)).
			WithRemedy(`send the terminal's bytes as binary messages, and {"resize":{"cols":80,"rows":24}} as text`)
	}
	if m.Resize != nil {
		if m.Resize.Cols < 1 || m.Resize.Cols > maxTermSize || m.Resize.Rows < 1 || m.Resize.Rows > maxTermSize {
			return fault.InvalidField("resize", "%d by %d is outside 1 to %d", m.Resize.Cols, m.Resize.Rows, maxTermSize)
		}
		if err := t.Resize(m.Resize.Cols, m.Resize.Rows); err != nil {
			return err
		}
	}
	if m.Signal != nil {
		sig := unix.SignalNum(strings.ToUpper(*m.Signal))
		if sig == 0 {
			return fault.InvalidField("signal", "%q is not a valid signal; use one such as SIGINT", sandbox.Clip(*m.Signal, 40))
		}
		return t.Signal(syscall.Signal(sig))
	}
	return nil
}

func control(ctx context.Context, conn *websocket.Conn, m v1.TerminalControl) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, data)
}
