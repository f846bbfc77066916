// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/audit"
	"sandpit.dev/fault"
)

// server makes the SDK's server with the tools of a profile that a caller may use.
func (h *Handler) server(p toolset.Profile, version string, write bool) *mcp.Server {
	o := &mcp.ServerOptions{
		Instructions: p.Instructions(h.groups),
		Logger:       transport.SDKLogger(h.log),
		// Not nil, so that logging is not claimed; the lists never change.
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Extensions: map[string]any{transport.ExtensionTasks: map[string]any{}},
		},
		// Which tools there are depends on the token.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	}
	if p.Options != nil {
		p.Options(o)
	}
	if h.extend.Options != nil {
		h.extend.Options(o)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "sandpit", Title: "sandpit sandboxes", Version: version}, o)
	hidden, grouped, last := make(map[string]*toolset.Tool), make(map[string]*toolset.Tool), make(map[string]*toolset.Tool)
	for _, t := range p.Tools(h.groups) {
		if t.Past != nil {
			last[t.Name] = &t
		}
		if t.Group != "" {
			grouped[t.Name] = &t
		}
		if !write && !t.ReadOnly {
			hidden[t.Name] = &t
			continue
		}
		hints := &mcp.ToolAnnotations{ReadOnlyHint: t.ReadOnly, IdempotentHint: t.Idempotent, OpenWorldHint: &t.OpenWorld}
		if !t.ReadOnly {
			hints.DestructiveHint = &t.Destructive
		}
		s.AddTool(&mcp.Tool{
			Name: t.Name, Title: t.Title, Description: t.About, InputSchema: toolset.Schema(t.Params), Annotations: hints,
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return h.serve(ctx, req, &t), nil
		})
	}
	s.AddReceivingMiddleware(refuseUnknown(p, h.groups), tellInside(h.services.Images))
	if len(hidden) > 0 {
		s.AddReceivingMiddleware(refuseHidden(h, hidden))
	}
	if len(grouped) > 0 {
		s.AddReceivingMiddleware(narrowTools(h, grouped))
	}
	s.AddReceivingMiddleware(h.logged, traced, h.noticed(p.Name))
	if p.Serve != nil {
		p.Serve(s)
	}
	h.transport.Add(s, lasting{h, last}, h.extend.Server)
	return s
}

// lasting are the tools of which what they begin is on record.
type lasting struct {
	h     *Handler
	tools map[string]*toolset.Tool
}

// Recorded reports whether what a tool begins is on record.
func (l lasting) Recorded(tool string) bool { return l.tools[tool] != nil }

// Past asks the tools for a task of an earlier server.
func (l lasting) Past(ctx context.Context, req mcp.Request, id string) (*transport.PastTask, error) {
	for _, t := range l.tools {
		c := l.h.call(transport.CallOf(req), t)
		c.Args = toolset.NewArgs(nil, nil)
		if p, err := t.Past(ctx, c, id); p != nil || err != nil {
			return p, err
		}
	}
	return nil, nil
}

// refuseHidden answers a call of a tool that the token may not use with the
// scope that it lacks, where the SDK would say that there is no such tool.
func refuseHidden(h *Handler, hidden map[string]*toolset.Tool) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if r, ok := req.(*mcp.CallToolRequest); ok && r.Params != nil {
				if t := hidden[r.Params.Name]; t != nil {
					c := h.call(transport.CallOf(r), t)
					_, tell := h.audited(ctx, c)
					defer tell()
					return c.Failure(ctx, c.Caller.Inside().Require(access.SandboxesWrite)), nil
				}
			}
			return next(ctx, method, req)
		}
	}
}

func (h *Handler) call(by *transport.Call, t *toolset.Tool) *toolset.Call {
	return &toolset.Call{Call: by, Tool: t, Services: h.services, Log: h.log, Groups: h.groups, AskWait: h.askWait, Links: h.files, Previews: h.previews}
}

// serve answers one call. It runs in a goroutine of the SDK's, where no guard
// would stop a panic from taking the server with it.
func (h *Handler) serve(ctx context.Context, req *mcp.CallToolRequest, t *toolset.Tool) (res *mcp.CallToolResult) {
	ctx, by, done := h.transport.Begin(ctx, req)
	defer done()
	c := h.call(by, t)
	ctx, tell := h.audited(ctx, c)
	defer tell()
	defer func() {
		if v := recover(); v != nil {
			c.Log.ErrorContext(ctx, "a tool panicked", "tool", t.Name, "panic", v, "stack", string(debug.Stack()))
			res = c.Failure(ctx, fault.New(fault.Internal, "panic: %v", v))
		}
	}()
	c.Args = toolset.NewArgs(t.Params, req.Params.Arguments)
	if err := c.Args.Err(); err != nil {
		return c.Failure(ctx, err)
	}
	if token := req.Params.GetProgressToken(); token != nil || c.Task != nil {
		c.Progress = toolset.StartProgress(ctx, func(ctx context.Context, count float64, message string) {
			if c.Task != nil {
				c.Task.Say(message)
			}
			if token != nil && !c.Task.Begun() {
				// A client that does not hear of it loses nothing.
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: count, Message: message})
			}
		})
	}
	defer c.Progress.Stop()
	a, err := t.Run(ctx, c)
	if err != nil {
		return c.Failure(ctx, err)
	}
	a.Notes = append(a.Notes, c.Args.Notes...)
	return a.Result()
}

// audited returns the context of a call that the audit log tells of, and what tells it at the end.
func (h *Handler) audited(ctx context.Context, c *toolset.Call) (context.Context, func()) {
	if h.record == nil {
		return ctx, func() {}
	}
	o, began := &audit.Operation{Caller: c.Caller, Name: c.Tool.Name, Recorded: true}, time.Now()
	return audit.With(ctx, o), func() {
		o.Target = c.Ref
		h.record(ctx, o, audit.Answer{Type: audit.Tool, Err: c.Failed, Took: time.Since(began)})
	}
}

// narrowTools hides from a caller the groups that its token's scopes leave out.
// The list depends on the token alone, so that it is the same each time.
func narrowTools(h *Handler, groups map[string]*toolset.Tool) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			caller := transport.CallOf(req).Caller
			if r, ok := req.(*mcp.CallToolRequest); ok && r.Params != nil {
				if t := groups[r.Params.Name]; t != nil && !caller.SeesTools(t.Group) {
					c := h.call(transport.CallOf(r), t)
					_, tell := h.audited(ctx, c)
					defer tell()
					return c.Failure(ctx, narrowed(caller, t)), nil
				}
			}
			res, err := next(ctx, method, req)
			if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
				list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool {
					g := groups[t.Name]
					return g != nil && !caller.SeesTools(g.Group)
				})
			}
			return res, err
		}
	}
}
