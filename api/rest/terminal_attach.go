// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
)

// recentScreen is how much of what a terminal has shown is given to who joins it, if
// no other amount is asked for: many screens of text, in bytes.
const recentScreen = 64 << 10

type listTerminals struct {
	Ref    string  `path:"id" doc:"the sandbox's id or key"`
	Limit  *int    `query:"limit" doc:"most rows of a page, 1 to 1000; default 100"`
	Cursor *string `query:"cursor" doc:"next_cursor of the page before"`
}

func (a *API) listTerminals(ctx context.Context, c *idempotency.Call, in *listTerminals) (v1.ProcessList, error) {
	q := process.Query{Running: true, Tty: true, Cursor: httpapi.Given(in.Cursor)}
	if in.Limit != nil {
		if *in.Limit < 1 || *in.Limit > process.MaxPage {
			return v1.ProcessList{}, fault.InvalidField("limit", "%d is outside 1 to %d", *in.Limit, process.MaxPage)
		}
		q.Limit = *in.Limit
	}
	return a.processPage(ctx, c, in.Ref, q)
}

// openStaying starts a terminal that outlives the connection, and joins it.
func (a *API) openStaying(ctx context.Context, c *idempotency.Call, ref string, r engine.TerminalRequest) error {
	rec, err := a.Processes.StartProcess(ctx, c.Caller, ref, engine.StartRequest{
		Shell: r.ShellText(), Argv: r.Argv, Cwd: r.Cwd, Env: r.Env, User: r.User,
		Terminal: &engine.TerminalSize{Cols: r.Cols, Rows: r.Rows, Term: r.Term},
	})
	if err != nil {
		return err
	}
	return a.joinTerminal(ctx, c, &byProcess{Ref: ref, ID: rec.ID}, engine.FollowRequest{})
}

type attachTerminal struct {
	byProcess
	Recent *int64 `query:"recent" doc:"about how many bytes of what it has shown come first, 1 to 67108864; default 65536"`
}

func (a *API) attachTerminal(ctx context.Context, c *idempotency.Call, in *attachTerminal) error {
	recent, err := recentBytes(in.Recent)
	if err != nil {
		return err
	}
	if recent == 0 {
		recent = recentScreen
	}
	if !strings.EqualFold(c.R.Header.Get("Upgrade"), "websocket") {
		c.W.Header().Set("Upgrade", "websocket")
		return guard.WithStatus(http.StatusUpgradeRequired,
			fault.New(fault.Malformed, "a terminal is a WebSocket, and the request asks for none").
				WithRemedy("connect with a WebSocket client, or run sandpit shell --attach"))
	}
	return a.joinTerminal(ctx, c, &in.byProcess, engine.FollowRequest{Recent: recent})
}

// joinTerminal carries bytes both ways between a client and a terminal that stays.
func (a *API) joinTerminal(ctx context.Context, c *idempotency.Call, to *byProcess, r engine.FollowRequest) error {
	g, err := a.Processes.Follow(ctx, c.Caller, to.Ref, to.ID, r)
	if err != nil {
		return err
	}
	defer g.Close()
	to.ID = g.Record().ID
	if !g.Record().Terminal {
		return fault.New(fault.State, "the process %s has no terminal", to.ID).
			WithRemedy("follow its output: GET …/processes/%s/output", to.ID)
	}
	c.W.Header().Set(v1.ProcessHeader, to.ID)
	return a.serveSocket(ctx, c, to, g, true)
}
