// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func (a *API) listPorts(ctx context.Context, c *idempotency.Call, in *byRef) (v1.PortList, error) {
	ports, truncated, err := a.Ports.Ports(ctx, c.Caller, in.Ref)
	if err != nil {
		return v1.PortList{}, err
	}
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return v1.PortList{}, err
	}
	out := v1.PortList{Items: make([]v1.Port, 0, len(ports)), Truncated: truncated}
	for _, p := range ports {
		item := v1.Port{Port: p.Port, Protocol: p.Protocol, Address: p.Address.String(), PID: p.PID, Command: p.Command, User: p.User}
		if a.previews != nil && p.Protocol == "tcp" {
			item.URL, _ = a.previews.Addresses(c.R, string(s.ID), p.Port)
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

type connectPort struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Port string `path:"port" doc:"1 to 65535"`
}

// maxPortMessage bounds one message of a connection's bytes.
const maxPortMessage = 1 << 20

func (a *API) connectPort(ctx context.Context, c *idempotency.Call, in *connectPort) error {
	// The port is dialled before the client is answered, so that what is wrong
	// with it is an HTTP answer; so it must be sure that a WebSocket will follow.
	if !strings.EqualFold(c.R.Header.Get("Upgrade"), "websocket") {
		c.W.Header().Set("Upgrade", "websocket")
		return guard.WithStatus(http.StatusUpgradeRequired,
			fault.New(fault.Malformed, "a connection to a port is a WebSocket, and the request asks for none").
				WithRemedy("connect with a WebSocket client, or run sandpit forward"))
	}
	port, err := strconv.Atoi(in.Port)
	if err != nil {
		return fault.InvalidField("port", "%q is not a valid number", sandbox.Clip(in.Port, 40))
	}
	nc, err := a.Ports.DialPort(ctx, c.Caller, in.Ref, port)
	if err != nil {
		return err
	}
	defer nc.Close()
	c.Upgrade(ctx, maxPortMessage, func(ctx context.Context, conn *websocket.Conn) { servePort(ctx, conn, nc, c.Stall()) })
	return nil
}

// servePort carries bytes both ways until both directions have ended, one side
// is gone or the server stops.
func servePort(ctx context.Context, conn *websocket.Conn, nc *ports.Conn, stall time.Duration) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	// A context that ends breaks the connection, and with it the last words.
	steady := context.WithoutCancel(ctx)
	sent := make(chan struct{}) // the client has
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := fromClient(steady, conn, nc, func() { close(sent) }); err != nil {
			cancel(err)
		}
	})
	err := toClient(steady, conn, nc, stall)
	if err == nil {
		select {
		case <-sent:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	last, bye := context.WithTimeout(steady, byeTimeout)
	defer bye()
	if err == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "")
	} else {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		p, _ := guard.Problem(err, guard.RequestID(ctx))
		_ = portControl(last, conn, v1.PortControl{Error: &p})
		_ = conn.Close(websocket.StatusGoingAway, "")
	}
	cancel(nil)
	_ = conn.CloseNow()
	wg.Wait()
}

// toClient sends what the program sends, and its end.
func toClient(ctx context.Context, conn *websocket.Conn, nc *ports.Conn, stall time.Duration) error {
	send := func(do func(context.Context) error) error {
		wctx, cancel := context.WithTimeout(ctx, stall)
		defer cancel()
		if err := do(wctx); err != nil {
			return fault.Wrap(fault.Canceled, err, "the client has gone")
		}
		return nil
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := nc.Read(buf)
		if n > 0 {
			if err := send(func(ctx context.Context) error { return conn.Write(ctx, websocket.MessageBinary, buf[:n]) }); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return send(func(ctx context.Context) error { return portControl(ctx, conn, v1.PortControl{End: true}) })
		case err != nil:
			return err
		}
	}
}

// fromClient hands on what the client sends, until it goes away. ended is called
// when it has said that it sends nothing more.
func fromClient(ctx context.Context, conn *websocket.Conn, nc *ports.Conn, ended func()) error {
	over := false
	for {
		kind, data, err := conn.Read(ctx)
		switch {
		case err != nil:
			return fault.Wrap(fault.Canceled, err, "the client has gone")
		case over:
			return fault.New(fault.Malformed, "the client sends on after its end")
		case kind == websocket.MessageBinary:
			if _, err := nc.Write(data); err != nil {
				return fault.Wrap(fault.Unavailable, err, "the program in the sandbox takes nothing more")
			}
			continue
		}
		var m v1.PortControl
		if err := json.Unmarshal(data, &m); err != nil || !m.End {
			return fault.New(fault.Malformed, "the control message %q is not of the known form", sandbox.Clip(string(data), 80)).
				WithRemedy(`send the connection's bytes as binary messages, and {"end":true} as text behind the last`)
		}
		over = true
		_ = nc.CloseWrite() // a program that is gone takes no end
		ended()
	}
}

func portControl(ctx context.Context, conn *websocket.Conn, m v1.PortControl) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, data)
}
