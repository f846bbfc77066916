// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/fault"
)

// tool is one tool: what a model reads of it, and what it does.
type tool struct {
	name, title, about string
	params             []param
	example            string // arguments that are right, for messages
	readOnly           bool   // else it needs a token that may write
	destructive        bool
	idempotent         bool
	openWorld          bool   // it may reach beyond the sandbox
	group              string // empty: of a profile that has none
	words              *words // of its profile, for errors; nil: those of the default one
	run                func(context.Context, *call) (*answer, error)
}

// tools lists those of the groups that are switched on; a client gets them sorted
// by name.
func tools(groups []string) []tool {
	var all []tool
	for _, g := range groups {
		for _, t := range toolsOf(g) {
			t.group = g
			all = append(all, t)
		}
	}
	return all
}

// call is one call of a tool. It belongs to the goroutine that serves it.
type call struct {
	*transport.Call
	tool     *tool
	engine   Engine
	log      *slog.Logger
	groups   []string // of tools, that are switched on
	args     *args
	progress *progress
	ref      string           // the sandbox that it works in, once known
	revived  map[string]*tool // the profile's, where it speaks for calls of an earlier server

	cells    *cells          // that go on
	files    *filelink.Links // nil: there are no links to files
	previews Previews        // nil: there are none to ports
}

// server makes the SDK's server with the tools of a profile that a caller may use.
func (h *Handler) server(p profile, version string, write bool) *mcp.Server {
	o := &mcp.ServerOptions{
		Instructions: p.instructions(h.groups),
		Logger:       h.log,
		// Not nil, so that logging is not claimed; the lists never change.
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Extensions: map[string]any{transport.ExtensionTasks: map[string]any{}},
		},
		// Which tools there are depends on the token.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	}
	if p.name == ProfileSandpit {
		o.Capabilities.Resources, o.Capabilities.Prompts = &mcp.ResourceCapabilities{}, &mcp.PromptCapabilities{}
		o.Capabilities.Extensions[extensionSkills] = map[string]any{}
		o.CompletionHandler = h.complete
	}
	if h.extend.Options != nil {
		h.extend.Options(o)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "sandpit", Title: "sandpit sandboxes", Version: version}, o)
	hidden, grouped, all := make(map[string]*tool), make(map[string]*tool), make(map[string]*tool)
	for _, t := range p.tools(h.groups) {
		all[t.name] = &t
		if t.group != "" {
			grouped[t.name] = &t
		}
		if !write && !t.readOnly {
			hidden[t.name] = &t
			continue
		}
		hints := &mcp.ToolAnnotations{ReadOnlyHint: t.readOnly, IdempotentHint: t.idempotent, OpenWorldHint: &t.openWorld}
		if !t.readOnly {
			hints.DestructiveHint = &t.destructive
		}
		s.AddTool(&mcp.Tool{
			Name: t.name, Title: t.title, Description: t.about, InputSchema: schema(t.params), Annotations: hints,
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return h.serve(ctx, req, &t), nil
		})
	}
	if len(hidden) > 0 {
		s.AddReceivingMiddleware(refuseHidden(h, hidden))
	}
	if len(grouped) > 0 {
		s.AddReceivingMiddleware(narrowTools(h, grouped))
	}
	if p.name == ProfileSandpit {
		h.serveResources(s)
		servePrompts(s)
		serveSkill(s, h.skill)
	}
	past := func(ctx context.Context, req mcp.Request, id string) (*transport.PastTask, error) {
		return h.callAbout(req, all).past(ctx, id)
	}
	h.transport.Add(s, past, h.extend.Server)
	return s
}

// refuseHidden answers a call of a tool that the token may not use with the
// scope that it lacks, where the SDK would say that there is no such tool.
func refuseHidden(h *Handler, hidden map[string]*tool) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if r, ok := req.(*mcp.CallToolRequest); ok && r.Params != nil {
				if t := hidden[r.Params.Name]; t != nil {
					c := h.call(transport.CallOf(r), t)
					return c.failure(ctx, c.Caller.Require(access.SandboxesWrite)), nil
				}
			}
			return next(ctx, method, req)
		}
	}
}

func (h *Handler) call(by *transport.Call, t *tool) *call {
	return &call{Call: by, tool: t, engine: h.engine, log: h.log, groups: h.groups, files: h.files, previews: h.previews, cells: h.cells}
}

// serve answers one call. It runs in a goroutine of the SDK's, where no guard
// would stop a panic from taking the server with it.
func (h *Handler) serve(ctx context.Context, req *mcp.CallToolRequest, t *tool) (res *mcp.CallToolResult) {
	ctx, by, done := h.transport.Begin(ctx, req)
	defer done()
	c := h.call(by, t)
	defer func() {
		if v := recover(); v != nil {
			c.log.ErrorContext(ctx, "a tool panicked", "tool", t.name, "panic", v, "stack", string(debug.Stack()))
			res = c.failure(ctx, fault.New(fault.Internal, "panic: %v", v))
		}
	}()
	c.args = newArgs(t.params, req.Params.Arguments)
	if err := c.args.err(); err != nil {
		return c.failure(ctx, err)
	}
	if token := req.Params.GetProgressToken(); token != nil || c.Task != nil {
		c.progress = startProgress(ctx, func(ctx context.Context, count float64, message string) {
			if c.Task != nil {
				c.Task.Say(message)
			}
			if token != nil && !c.Task.Begun() {
				// A client that does not hear of it loses nothing.
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: count, Message: message})
			}
		})
	}
	defer c.progress.stop()
	a, err := t.run(ctx, c)
	if err != nil {
		return c.failure(ctx, err)
	}
	a.notes = append(a.notes, c.args.notes...)
	return a.result()
}
