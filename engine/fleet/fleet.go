// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet lists, stops and deletes sandboxes of all projects, for who runs the server. It stands above the
// engine, of whose verbs it is made, and knows no coat.
package fleet

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Engine is what the package asks of the engine's verbs; *engine.Engine has it.
type Engine interface {
	List(ctx context.Context, c access.Caller, r engine.SandboxesRequest) (engine.Page, error)
	Stop(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Delete(ctx context.Context, c access.Caller, ref string) error
}

// Fleet is the sandboxes of all projects. It is safe for concurrent use.
type Fleet struct{ engine Engine }

// New returns the fleet of an engine.
func New(e Engine) *Fleet { return &Fleet{e} }

// List returns sandboxes of all projects, or of r.Project. It needs the scope server:admin, as all of the package does.
func (f *Fleet) List(ctx context.Context, c access.Caller, r engine.SandboxesRequest) (engine.Page, error) {
	r.AllProjects = true
	return f.engine.List(ctx, c, r)
}

// Selection names sandboxes: by their ids, or by what is said of them. Exactly one of the two.
type Selection struct {
	IDs []sandbox.ID // at most MaxIDs
	// Filter selects, without its page. One that selects all is taken.
	Filter *engine.SandboxesRequest
	// DryRun does nothing, and tells what would be done.
	DryRun bool
}

// Bounds of a selection.
const (
	MaxIDs = 1000
	atOnce = 8 // sandboxes that are stopped or deleted at a time
)

// Result is what became of each sandbox that was selected, in no order.
type Result struct {
	Stopped []sandbox.ID
	Deleted []sandbox.ID
	Skipped []sandbox.ID // there was nothing to do
	Failed  []Failure
}

// Failure is a sandbox that the work failed for.
type Failure struct {
	ID  sandbox.ID
	Err error
}

// Stop stops sandboxes. One that is not up is skipped; a failure does not spare the others.
func (f *Fleet) Stop(ctx context.Context, c access.Caller, s Selection) (Result, error) {
	var r Result
	var mu sync.Mutex
	err := f.each(ctx, c, s, func(ctx context.Context, as access.Caller, one *sandbox.Sandbox) {
		up := one.State == sandbox.Running || one.State == sandbox.Paused || one.State.Intent()
		var err error
		if up && !s.DryRun {
			_, err = f.engine.Stop(ctx, as, string(one.ID))
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !up || fault.Is(err, fault.NotFound):
			r.Skipped = append(r.Skipped, one.ID)
		case err != nil:
			r.Failed = append(r.Failed, Failure{one.ID, err})
		default:
			r.Stopped = append(r.Stopped, one.ID)
		}
	}, func(id sandbox.ID, err error) { r.Failed = append(r.Failed, Failure{id, err}) })
	return r, err
}

// Delete deletes sandboxes, with all that is in them. One that is gone meanwhile is skipped.
func (f *Fleet) Delete(ctx context.Context, c access.Caller, s Selection) (Result, error) {
	var r Result
	var mu sync.Mutex
	err := f.each(ctx, c, s, func(ctx context.Context, as access.Caller, one *sandbox.Sandbox) {
		var err error
		if !s.DryRun {
			err = f.engine.Delete(ctx, as, string(one.ID))
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case fault.Is(err, fault.NotFound):
			r.Skipped = append(r.Skipped, one.ID)
		case err != nil:
			r.Failed = append(r.Failed, Failure{one.ID, err})
		default:
			r.Deleted = append(r.Deleted, one.ID)
		}
	}, func(id sandbox.ID, err error) { r.Failed = append(r.Failed, Failure{id, err}) })
	return r, err
}

// each calls do for each sandbox of a selection, several at a time, as a caller of its project; and missing,
// before all of them, for ids that there are not.
func (f *Fleet) each(ctx context.Context, c access.Caller, s Selection, do func(context.Context, access.Caller, *sandbox.Sandbox), missing func(sandbox.ID, error)) error {
	if err := c.Require(access.ServerAdmin); err != nil {
		return err
	}
	all, err := f.selected(ctx, c, s, missing)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, one := range all {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			as := c
			as.Project = one.Project
			do(ctx, as, one)
			return nil
		})
	}
	_ = group.Wait() // which has no errors
	return ctx.Err()
}

// selected returns the sandboxes of a selection as they are before any work.
func (f *Fleet) selected(ctx context.Context, c access.Caller, s Selection, missing func(sandbox.ID, error)) ([]*sandbox.Sandbox, error) {
	switch {
	case len(s.IDs) > 0 && s.Filter != nil:
		return nil, fault.InvalidField("sandbox_ids", "and a filter cannot both be given")
	case len(s.IDs) > MaxIDs:
		return nil, fault.InvalidField("sandbox_ids", "has %d entries, more than %d", len(s.IDs), MaxIDs)
	case len(s.IDs) == 0 && s.Filter == nil:
		return nil, fault.InvalidField("sandbox_ids", "is empty; name sandboxes, or give a filter")
	}
	q := engine.SandboxesRequest{}
	if s.Filter != nil {
		q = *s.Filter
	}
	q.AllProjects, q.Oldest, q.Limit, q.Offset, q.Cursor = true, true, engine.MaxPage, 0, ""
	wanted := make(map[sandbox.ID]bool, len(s.IDs))
	for _, id := range s.IDs {
		wanted[id] = true
	}
	var out []*sandbox.Sandbox
	for {
		page, err := f.engine.List(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for _, one := range page.Items {
			if s.Filter != nil || wanted[one.ID] {
				out = append(out, one)
				delete(wanted, one.ID)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" || s.Filter == nil && len(wanted) == 0 {
			break
		}
	}
	for _, id := range s.IDs {
		if wanted[id] {
			missing(id, fault.New(fault.NotFound, "there is no sandbox %q", sandbox.Clip(string(id), 40)))
			delete(wanted, id)
		}
	}
	return out, nil
}
