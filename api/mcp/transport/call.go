// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/internal/budget"
)

// Call is a request of a client's, for the code that answers it. It is about that request, and
// not about the one that opened the session, whose context the SDK passes on.
type Call struct {
	Caller  access.Caller // zero: not known
	Address *http.Request // of the server, as the caller reaches it; nil: not known
	Task    *Task         // that the call may become; nil: the client knows of none

	req      *mcp.CallToolRequest // nil: it is not a tool's
	session  string               // of the handshake era
	delivery *delivery            // nil: the answer's way back is not the handshake era's
	room     *budget.Room         // of the request; nil: it has none
	own      *budget.Room         // of the call; nil: of a call that is not a tool's
}

// Where a call's token info holds what is known of its request.
const (
	extraCaller   = "caller"
	extraDelivery = "delivery"
	extraRequest  = "request"
	extraRoom     = "room"
)

// infoOf is what a call knows of its request.
func infoOf(r *http.Request) *auth.TokenInfo {
	c, ok := r.Context().Value(callerKey{}).(access.Caller)
	if !ok {
		return nil
	}
	return &auth.TokenInfo{UserID: Identity(c), Extra: map[string]any{
		extraCaller: c, extraDelivery: deliveryOf(r.Context()), extraRequest: addressOf(r), extraRoom: r.Context().Value(roomKey{}),
	}}
}

// CallOf returns the call of a request.
func CallOf(req mcp.Request) *Call {
	c := &Call{}
	if x := req.GetExtra(); x != nil && x.TokenInfo != nil {
		c.Caller, _ = x.TokenInfo.Extra[extraCaller].(access.Caller)
		c.Address, _ = x.TokenInfo.Extra[extraRequest].(*http.Request)
		c.delivery, _ = x.TokenInfo.Extra[extraDelivery].(*delivery)
		c.room, _ = x.TokenInfo.Extra[extraRoom].(*budget.Room)
	}
	return c
}

// Begin returns the call of a tool, and the context to answer it in, which ends with the
// call's session or connection, or with the server. done is called when it is answered.
func (h *Handler) Begin(ctx context.Context, req *mcp.CallToolRequest) (_ context.Context, c *Call, done func()) {
	c = CallOf(req)
	c.req, c.session, c.Task, c.own = req, req.Session.ID(), taskOf(ctx), h.memory.Open(c.Caller.Project)
	ctx, end := h.calls.begin(ctx, c)
	return ctx, c, func() {
		end()
		c.own.Close()
	}
}

// Reserve takes memory for n bytes that a tool is about to read whole. It counts against the
// request, or against the call itself if the request is answered already, as of a task.
func (c *Call) Reserve(ctx context.Context, n int64) error {
	if c.room != nil {
		_, err := c.room.Take(ctx, dataCost*n)
		if !errors.Is(err, budget.ErrClosed) {
			return err
		}
	}
	_, err := c.own.Take(ctx, dataCost*n)
	return err
}

// addressOf keeps the parts of a request that addresses are made of.
func addressOf(r *http.Request) *http.Request {
	h := make(http.Header)
	for _, n := range []string{"X-Forwarded-Proto", "X-Forwarded-Host"} {
		if v := r.Header.Get(n); v != "" {
			h.Set(n, v)
		}
	}
	return &http.Request{Host: r.Host, TLS: r.TLS, Header: h}
}

// Identity returns what identifies a caller to sessions, tasks and whatever else outlives a
// request.
func Identity(c access.Caller) string {
	return strings.Join([]string{c.Project, c.TokenID, c.Actor}, "\x00")
}
