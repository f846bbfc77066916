// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/access/seen"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/profile/sandpit"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/api/service"
	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/runs"
)

// Options is what a handler is made of.
type Options struct {
	Services service.Services // required
	// Caller tells who makes the request that a context belongs to, as the guard in
	// front found it. Required. Its error is answered with 401.
	Caller func(context.Context) (access.Caller, error)
	// Record is called for every call of a tool, for the audit log. It may be nil.
	Record  func(context.Context, *audit.Operation, audit.Answer)
	Version string       // for clients to show
	Groups  []string     // of tools, that are switched on and off; see toolset.Groups
	Profile string       // of requests for which neither path nor token names one; "": sandpit.Name
	Logger  *slog.Logger // nil: discard
	Logs    Logs
	// Runs are the defaults of runs, as the runner has them.
	Runs runs.Defaults
	// Descriptions of tools go before ours, or behind them.
	Descriptions Descriptions
	// Files makes links to files, Previews to ports; nil: there are none.
	Files     *filelink.Links
	Previews  toolset.Previews
	Artifacts sandpit.Artifacts // nil: what runs left, and what is under /artifacts of sandboxes that run
	// MaxBody is the most bytes of one message; zero: 16 MiB.
	MaxBody int64
	// SessionTimeout ends a session that makes no call for so long; zero: 24 h.
	SessionTimeout time.Duration
	// KeepAlive is how long a stream may stand still before a comment shows that it
	// lives; zero: 15 s.
	KeepAlive time.Duration
	// ReturnGrace is how long the calls of a client whose connection broke go on, so
	// that it may come back for the answers where its transport can; zero: 30 s.
	ReturnGrace time.Duration
	// TaskAfter is how long a call takes before a client that knows of tasks gets one;
	// zero: 10 s.
	TaskAfter time.Duration
	// AskWait is how long a call waits for a person's answer to a form, where it has to wait; zero: 45 s.
	AskWait time.Duration
	// Memory bounds what requests and their answers hold; nil: a budget of its own.
	Memory *budget.Budget
	Extend Extension
	// Seen remembers who calls; nil: nobody does.
	Seen *seen.Log
}

// defaultAskWait is less than what clients wait for an answer.
const defaultAskWait = 45 * time.Second

// Extension adds to what a handler offers. It is called for every server of the SDK's
// that a handler makes, one for each profile and each kind of token.
type Extension struct {
	Options func(*mcp.ServerOptions) // changes them; nil: nothing
	Server  func(*mcp.Server)        // adds to it; nil: nothing
}

// Handler serves MCP. It is safe for concurrent use.
type Handler struct {
	transport *transport.Handler
	services  service.Services
	caller    func(context.Context) (access.Caller, error)
	record    func(context.Context, *audit.Operation, audit.Answer)
	log       *slog.Logger
	logs      Logs
	seen      *seen.Log
	groups    []string
	keepAlive time.Duration
	askWait   time.Duration

	files    *filelink.Links
	previews toolset.Previews
	extend   Extension

	profile  string // where a request names none
	profiles []toolset.Profile
	faces    map[string]faces                    // by profile
	tools    map[string]map[string]*toolset.Tool // by profile, and by name
}

// New makes a handler. It starts nothing; sessions begin with requests. An
// option that is missing is fault.Invalid.
func New(o Options) (*Handler, error) {
	if !o.Services.Complete() {
		return nil, fault.InvalidField("services", "are not all there")
	}
	if err := toolset.CheckGroups("groups", o.Groups); err != nil {
		return nil, err
	}
	if err := CheckProfile("profile", o.Profile); err != nil {
		return nil, err
	}
	h := &Handler{
		services: o.Services, caller: o.Caller, record: o.Record, log: o.Logger, logs: o.Logs, seen: o.Seen, groups: toolset.SwitchedOn(o.Groups), keepAlive: o.KeepAlive, profile: o.Profile,
		files: o.Files, previews: o.Previews, extend: o.Extend,
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.askWait = o.AskWait; h.askWait <= 0 {
		h.askWait = defaultAskWait
	}
	if h.profile == "" {
		h.profile = sandpit.Name
	}
	if o.Version == "" {
		o.Version = "unknown"
	}
	own, err := sandpit.New(o.Services, o.Files, o.Artifacts, o.Runs, h.log)
	if err != nil {
		return nil, err
	}
	h.profiles = append([]toolset.Profile{own}, others(o.Runs, o.Services.SizeTable())...)
	if err := describe(h.profiles, h.groups, o.Descriptions); err != nil {
		return nil, err
	}
	h.transport, err = transport.New(transport.Options{
		Caller: o.Caller, Server: h.serverOf, Lacking: h.lacking, Logger: h.log, MaxBody: o.MaxBody, SessionTimeout: o.SessionTimeout,
		KeepAlive: o.KeepAlive, ReturnGrace: o.ReturnGrace, TaskAfter: o.TaskAfter, Memory: o.Memory,
	})
	if err != nil {
		return nil, err
	}
	h.openProfiles(o.Version)
	return h, nil
}

// Close ends every call and every session, with the streams that hang on them.
// Commands that calls wait for go on running. Give it to
// http.Server.RegisterOnShutdown: else an idle client keeps the server from
// ending. Calls that come later are answered with an error. It may be called twice.
func (h *Handler) Close() {
	h.transport.Close()
	for _, p := range h.profiles {
		if p.Close != nil {
			p.Close()
		}
	}
}

// ServeHTTP serves one request: about a run, or of the protocol in either era.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, err := h.caller(r.Context()); err == nil && h.serveRun(w, r, c) {
		return
	}
	h.transport.ServeHTTP(w, r)
}
