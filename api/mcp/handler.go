// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Options is what a handler is made of.
type Options struct {
	Engine Engine // required
	// Caller tells who makes the request that a context belongs to, as the guard in
	// front found it. Required. Its error is answered with 401.
	Caller  func(context.Context) (access.Caller, error)
	Version string       // for clients to show
	Groups  []string     // of tools, beside those that are always there; see Groups
	Logger  *slog.Logger // nil: discard
	// MaxBody is the most bytes of one message; zero: 16 MiB.
	MaxBody int64
	// SessionTimeout ends a session that makes no call for so long; zero: 24 h.
	SessionTimeout time.Duration
}

const (
	defaultMaxBody        = 16 << 20
	defaultSessionTimeout = 24 * time.Hour
)

// Handler serves MCP. It is safe for concurrent use.
type Handler struct {
	engine  Engine
	caller  func(context.Context) (access.Caller, error)
	log     *slog.Logger
	groups  []string
	maxBody int64
	queues  *queues
	leases  *leases
	calls   *calls

	all      *mcp.Server // for callers that may write
	readOnly *mcp.Server // for all others
	modern   http.Handler
	legacy   http.Handler
}

// New makes a handler. It starts nothing; sessions begin with requests. An
// option that is missing is fault.Invalid.
func New(o Options) (*Handler, error) {
	switch {
	case o.Engine == nil:
		return nil, fault.InvalidField("engine", "is missing")
	case o.Caller == nil:
		return nil, fault.InvalidField("caller", "is missing")
	}
	if err := CheckGroups("groups", o.Groups); err != nil {
		return nil, err
	}
	h := &Handler{groups: o.Groups, engine: o.Engine, caller: o.Caller, log: o.Logger, maxBody: o.MaxBody, queues: newQueues(), leases: newLeases(), calls: newCalls()}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.maxBody <= 0 {
		h.maxBody = defaultMaxBody
	}
	if o.SessionTimeout <= 0 {
		o.SessionTimeout = defaultSessionTimeout
	}
	if o.Version == "" {
		o.Version = "unknown"
	}
	h.all, h.readOnly = h.server(o.Version, true), h.server(o.Version, false)
	// The guard has checked Host and Origin, for names that the SDK cannot know.
	h.modern = h.bound(mcp.NewStreamableHTTPHandler(h.serverOf, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: h.maxBody,
		DisableLocalhostProtection: true, Logger: h.log,
	}))
	h.legacy = h.bound(mcp.NewStreamableHTTPHandler(h.serverOf, &mcp.StreamableHTTPOptions{
		SessionTimeout: o.SessionTimeout, MaxRequestBodyBytes: h.maxBody,
		DisableLocalhostProtection: true, Logger: h.log,
	}))
	return h, nil
}

// Close ends every call and every session, with the streams that hang on them.
// Commands that calls wait for go on running. Give it to
// http.Server.RegisterOnShutdown: else an idle client keeps the server from
// ending. Calls that come later are answered with an error. It may be called twice.
func (h *Handler) Close() {
	// A session that is closed answers nothing any more.
	grace := time.NewTimer(answerGrace)
	defer grace.Stop()
	select {
	case <-h.calls.stop():
	case <-grace.C: // a client that does not read, or a subscription
	}
	for _, s := range []*mcp.Server{h.all, h.readOnly} {
		for session := range s.Sessions() {
			_ = session.Close() // it is gone either way
		}
	}
}

// answerGrace is how long Close waits for its answers to be written.
const answerGrace = 2 * time.Second

type callerKey struct{}

// ServeHTTP serves one request of either era.
func (h *Handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &response{ResponseWriter: rw}
	caller, err := h.caller(r.Context())
	if err != nil {
		e := fault.As(err)
		w.Header().Set("WWW-Authenticate", `Bearer realm="sandpit"`)
		w.refuse(http.StatusUnauthorized, strings.TrimSuffix(e.Message+"; "+e.Remedy, "; "))
		return
	}
	r = r.Clone(context.WithValue(r.Context(), callerKey{}, caller))
	switch r.Method {
	case http.MethodPost:
		defer h.calls.post()()
	case http.MethodDelete:
		h.calls.end(r.Header.Get(sessionHeader), caller)
	}
	modern, err := isModern(w, r, h.maxBody)
	switch {
	case err != nil:
		w.refuse(http.StatusRequestEntityTooLarge, err.Error())
	case modern:
		h.modern.ServeHTTP(w, r)
	default:
		h.legacy.ServeHTTP(w, r)
	}
}

// serverOf chooses the tools that a caller sees.
func (h *Handler) serverOf(r *http.Request) *mcp.Server {
	if c, ok := r.Context().Value(callerKey{}).(access.Caller); ok && c.May(access.SandboxesWrite) {
		return h.all
	}
	return h.readOnly
}

// extraCaller is where a call's token info holds the caller.
const extraCaller = "caller"

// identity is what makes two callers the same for a session.
func identity(c access.Caller) string {
	return strings.Join([]string{c.Project, c.TokenID, c.Actor}, "\x00")
}

// bound tells the SDK who calls, in the only way that it has: it then refuses a
// session's id that comes with another token. The token itself goes no further
// than here.
func (h *Handler) bound(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		c, ok := ctx.Value(callerKey{}).(access.Caller)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{
			UserID: identity(c), Extra: map[string]any{extraCaller: c},
		}, nil
	}
	checked := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer checked") // r is a clone, see ServeHTTP
		checked.ServeHTTP(w, r)
	})
}
