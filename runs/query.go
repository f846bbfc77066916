// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Get returns a run. What is another project's is as missing as what never was.
func (r *Runner) Get(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error) {
	_, leave, err := r.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	return r.own(ctx, c, id)
}

func (r *Runner) own(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error) {
	if !sandbox.ValidRunID(id) {
		return nil, noRun(id)
	}
	var run *sandbox.Run
	err := r.store.View(ctx, func(tx store.Tx) (err error) {
		run, err = tx.Runs().Get(id)
		return err
	})
	if fault.Is(err, fault.NotFound) || err == nil && run.Project != c.Project {
		return nil, noRun(id)
	}
	return run, err
}

func noRun(id string) *fault.Error {
	return fault.New(fault.NotFound, "there is no run %q", sandbox.Clip(id, 80)).
		WithRemedy("list the runs of its sandbox; a run is kept for some days after its end")
}

// Await waits until a run has ended, or wait has passed, and returns it as it is then.
func (r *Runner) Await(ctx context.Context, c access.Caller, id string, wait time.Duration) (*sandbox.Run, error) {
	bound, leave, err := r.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	run, err := r.own(bound, c, id)
	if err != nil || run.State.Ended() {
		return run, err
	}
	if w := r.worker(id); w != nil {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-w.done:
		case <-timer.C:
		case <-bound.Done():
			return nil, interrupted(ctx, bound)
		}
	}
	return r.own(bound, c, id)
}

// interrupted is why a wait was given up: ctx ended, or the engine.
func interrupted(ctx, bound context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Cause(bound)
}

// Page is one page of runs, without their commands.
type Page struct {
	Items []*sandbox.Run
	Next  string // the cursor of the next page; empty at the end
}

// ListRequest says which runs are wanted, newest first.
type ListRequest struct {
	Sandbox string // an id or a key, also of one that is gone; empty: the project's
	Kept    bool   // only those whose artifacts are kept
	Limit   int    // as of a page of sandboxes
	Cursor  string
}

// List lists the caller's runs. A sandbox that is not there and left none is fault.NotFound.
func (r *Runner) List(ctx context.Context, c access.Caller, q ListRequest) (Page, error) {
	_, leave, err := r.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return Page{}, err
	}
	defer leave()
	if q.Limit < 0 || q.Limit > store.MaxPage {
		return Page{}, fault.InvalidField("limit", "%d is outside 0 to %d (0: %d)", q.Limit, store.MaxPage, store.DefaultPage)
	}
	query := queryOf(c, q.Sandbox)
	query.Kept, query.Limit, query.Cursor = q.Kept, q.Limit, q.Cursor
	var page Page
	err = r.store.View(ctx, func(tx store.Tx) (err error) {
		page.Items, page.Next, err = tx.Runs().List(query)
		return err
	})
	if err == nil && q.Sandbox != "" && q.Cursor == "" && len(page.Items) == 0 {
		_, err = r.engine.Get(ctx, c, q.Sandbox) // none of it, or no such sandbox
	}
	return page, err
}

// queryOf selects the runs of a sandbox, by its id or its key.
func queryOf(c access.Caller, of string) store.RunQuery {
	if sandbox.ValidID(of) {
		return store.RunQuery{Project: c.Project, Sandbox: sandbox.ID(of)}
	}
	return store.RunQuery{Project: c.Project, Identifier: of}
}

// Cancel ends a run: the command that it is at is killed, and no other begun. It
// waits until that is so. One that has ended already is fine.
func (r *Runner) Cancel(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error) {
	_, leave, err := r.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return nil, err
	}
	defer leave()
	run, err := r.own(ctx, c, id)
	if err != nil || run.State.Ended() {
		return run, err
	}
	if w := r.worker(id); w != nil {
		if err := w.cancel(ctx); err != nil {
			return nil, err
		}
	}
	return r.Await(ctx, c, id, killBound)
}
