// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/query"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ActivityRequest selects events of one sandbox. Zero fields select all.
type ActivityRequest struct {
	ProcessID string // or what stands in place of one; name:NAME selects all that had the name
	Types     []sandbox.EventType
	Since     time.Time
	Until     time.Time
	After     int64 // only those with a greater Seq; implies Oldest
	Oldest    bool  // oldest first; else newest first
	Limit     int   // at most MaxPage; 0: DefaultPage
	Cursor    string
}

// Activity returns what happened to a sandbox, and the cursor of the next page. Looking at it
// does not count as a use of the sandbox: a console that shows it all day keeps nothing awake.
func (e *Engine) Activity(ctx context.Context, c access.Caller, ref string, r ActivityRequest) (page []*sandbox.Event, next string, err error) {
	c = c.Inside()
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, "", err
	}
	defer e.group.Leave()
	if err := query.Page(r.Limit); err != nil {
		return nil, "", err
	}
	b, err := e.find(ctx, c, ref)
	if err != nil {
		return nil, "", err
	}
	defer e.release(b)
	if err := e.heardIfItAnswers(ctx, b); err != nil {
		return nil, "", err
	}
	if err := e.outcomes.Wait(ctx, b); err != nil {
		return nil, "", err
	}
	q := store.EventQuery{
		Project: c.Project, Sandbox: b.id, ProcessID: r.ProcessID, Types: r.Types, Since: r.Since, Until: r.Until,
		After: r.After, Oldest: r.Oldest, Limit: r.Limit, Cursor: r.Cursor,
	}
	if name, ok := strings.CutPrefix(r.ProcessID, process.ByName); ok {
		q.ProcessID, q.Name, q.Named = "", name, true
	} else if strings.HasPrefix(r.ProcessID, process.ByNumber) {
		if q.ProcessID, err = e.processID(ctx, c, ref, r.ProcessID); err != nil {
			return nil, "", err
		}
	}
	err = e.core.Store.View(ctx, func(tx store.Tx) error {
		page, next, err = tx.Events().List(q)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// Departed returns the event of a sandbox's deletion, by its id: a key may be
// another sandbox's by now. One that is there, or never was, is fault.NotFound.
func (e *Engine) Departed(ctx context.Context, c access.Caller, id string) (*sandbox.Event, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.Leave()
	none := fault.New(fault.NotFound, "no sandbox %q was deleted", sandbox.Clip(id, 80))
	if !sandbox.ValidID(id) {
		return nil, none
	}
	var page []*sandbox.Event
	err := e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		page, _, err = tx.Events().List(store.EventQuery{
			Project: c.Project, Sandbox: sandbox.ID(id), Types: []sandbox.EventType{sandbox.EventDeleted}, Limit: 1,
		})
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(page) == 0:
		return nil, none
	}
	return page[0], nil
}
