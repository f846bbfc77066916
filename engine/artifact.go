// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ArtifactOptions says where artifacts are kept, and how much. Artifacts are the files
// below /artifacts that are copied out of a sandbox after each run.
type ArtifactOptions struct {
	Dir          string // made if it is missing; empty: none are copied out
	MaxBytes     int64  // of a run; zero: 256 MiB
	MaxFileBytes int64  // of a file; zero: 64 MiB
	MaxFiles     int    // of a run; zero: 5,000
	// Total is the most bytes of all runs together; what is over it goes, the oldest
	// run's first. A file counts for each run that has it. Zero: 10 GiB.
	Total int64
}

func (o ArtifactOptions) filled() ArtifactOptions {
	for p, def := range map[*int64]int64{&o.MaxBytes: 256 << 20, &o.MaxFileBytes: 64 << 20, &o.Total: 10 << 30} {
		if *p <= 0 {
			*p = def
		}
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 5000
	}
	return o
}

// LatestRun is what stands for the latest run whose artifacts were copied out.
const LatestRun = "latest"

// ArtifactRun gives the run whose artifacts are meant: by the name of its sandbox, a
// key or an id, which may be gone, and by its id or LatestRun.
func (e *Engine) ArtifactRun(ctx context.Context, c access.Caller, of, run string) (*sandbox.Run, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.leave()
	if run != LatestRun {
		r, err := e.ownRun(ctx, c, run)
		if err != nil {
			return nil, err
		}
		if of != r.Identifier && of != string(r.Sandbox) || !r.DroppedAt.IsZero() {
			return nil, noRun(run)
		}
		return r, nil
	}
	q := store.RunQuery{Project: c.Project, Kept: true, Limit: 1}
	if sandbox.ValidID(of) {
		q.Sandbox = sandbox.ID(of)
	} else {
		q.Identifier = of
	}
	var found *sandbox.Run
	err := e.store.View(ctx, func(tx store.Tx) error {
		for {
			page, next, err := tx.Runs().List(q)
			if err != nil || len(page) == 0 {
				return err
			}
			if page[0].DroppedAt.IsZero() {
				found = page[0]
				return nil
			}
			if q.Cursor = next; next == "" {
				return nil
			}
		}
	})
	if err == nil && found == nil {
		err = fault.New(fault.NotFound, "no run of %q has artifacts", sandbox.Clip(of, 80)).
			WithRemedy("write files under %s, run something in the sandbox by a run, then ask again", sandbox.Artifacts)
	}
	return found, err
}

// OpenArtifact opens a file of a run that ArtifactRun gave. Close it.
func (e *Engine) OpenArtifact(r *sandbox.Run, path string) (*os.File, sandbox.Artifact, error) {
	for _, a := range r.Artifacts {
		if a.Path != path || !r.ArtifactsKept {
			continue
		}
		base, err := os.OpenRoot(e.runKeep.Artifacts.Dir)
		if err != nil {
			return nil, a, fault.Wrap(fault.Unavailable, err, "the artifacts cannot be reached")
		}
		defer base.Close()
		f, err := base.Open(filepath.Join(r.ID, filepath.FromSlash(path)))
		if os.IsNotExist(err) { // it was collected meanwhile
			break
		}
		if err != nil {
			return nil, a, fault.Wrap(fault.Unavailable, err, "the artifact cannot be read")
		}
		return f, a, nil
	}
	return nil, sandbox.Artifact{}, fault.New(fault.NotFound, "the run has no artifact %q", sandbox.Clip(path, 200)).
		WithRemedy("ask for the directory: it lists what there is")
}

// extractBound is how long copying out may take.
const extractBound = 2 * time.Minute

// extract copies the artifacts of the run out, and records them, or why not. The error
// is that the engine ends: then nothing is recorded.
func (l *liveRun) extract(ctx context.Context) error {
	r := l.record()
	if l.e.runKeep.Artifacts.Dir == "" || r.ArtifactsKept || r.ArtifactsError != "" {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, extractBound)
	defer cancel()
	list, sum, err := l.copyOut(limited)
	if l.e.ending() {
		l.e.removeArtifacts(l.id)
		return shuttingDown()
	}
	l.e.checkpoint("run.copied")
	if err != nil {
		l.e.removeArtifacts(l.id)
		if limited.Err() != nil {
			err = fault.New(fault.Timeout, "copying them took longer than %s", extractBound)
		}
		text := reason(err)
		return l.commit(ctx, runChange{change: func(r *sandbox.Run) { r.ArtifactsError = text }})
	}
	return l.commit(ctx, runChange{
		change: func(r *sandbox.Run) { r.Artifacts, r.ArtifactBytes, r.ArtifactsKept = list, sum, true },
		events: []*sandbox.RunEvent{l.e.runEvent(sandbox.RunExtracted, 0)},
	})
}

// removeArtifacts removes the files of a run, if there are any.
func (e *Engine) removeArtifacts(run string) {
	dir := e.runKeep.Artifacts.Dir
	if dir == "" || !sandbox.ValidRunID(run) {
		return
	}
	base, err := os.OpenRoot(dir)
	if err != nil {
		if !os.IsNotExist(err) {
			e.log.Error("the artifacts cannot be reached", "error", err)
		}
		return
	}
	defer base.Close()
	for _, n := range []string{run, run + partSuffix, run + linkSuffix} {
		if err := base.RemoveAll(n); err != nil {
			e.log.Error("the artifacts of a run cannot be removed; the next start does it", "run", run, "error", err)
		}
	}
}

// sweepArtifacts removes what no record owns: what a crash left.
func (e *Engine) sweepArtifacts(ctx context.Context) {
	entries, err := os.ReadDir(e.runKeep.Artifacts.Dir)
	if err != nil {
		return // there is none, or the next run says why
	}
	for _, entry := range entries {
		id := entry.Name()[:min(len(entry.Name()), len("00000000-0000-0000-0000-000000000000"))]
		if !sandbox.ValidRunID(id) || e.runs.get(id) != nil {
			continue
		}
		kept := false
		err := e.store.View(ctx, func(tx store.Tx) error {
			r, err := tx.Runs().Get(id)
			kept = err == nil && (r.ArtifactsKept && entry.Name() == id || !r.State.Ended())
			if fault.Is(err, fault.NotFound) {
				err = nil
			}
			return err
		})
		if err != nil {
			e.collectFailed(ctx, err)
			return
		}
		if !kept {
			e.removeArtifacts(id)
		}
	}
}

// evictArtifacts takes artifacts away, the oldest run's first, while all together are
// too many.
func (e *Engine) evictArtifacts(ctx context.Context) {
	const why = "they were collected: the artifacts of newer runs needed the room"
	e.takeArtifacts(ctx, store.RunQuery{}, why, func(tx store.Tx) (bool, error) {
		sum, _, err := tx.Runs().Held()
		return sum > e.runKeep.Artifacts.Total, err
	})
}

// takeArtifacts takes the artifacts of the runs of a query away, the oldest's first,
// while more says so. The runs stay, and tell why.
func (e *Engine) takeArtifacts(ctx context.Context, q store.RunQuery, why string, more func(store.Tx) (bool, error)) {
	q.Kept, q.Ended, q.Oldest, q.Limit = true, true, true, 1
	for ctx.Err() == nil {
		var gone *sandbox.Run
		look := func(tx store.Tx) error {
			gone = nil
			if yes, err := more(tx); err != nil || !yes {
				return err
			}
			page, _, err := tx.Runs().List(q)
			if len(page) > 0 {
				gone = page[0]
			}
			return err
		}
		err := e.store.View(ctx, look) // mostly there is nothing to write
		if err == nil && gone == nil {
			return
		}
		if err == nil {
			err = e.store.Update(ctx, func(tx store.Tx) error {
				if err := look(tx); err != nil || gone == nil {
					return err
				}
				gone.Artifacts, gone.ArtifactBytes, gone.ArtifactsKept, gone.ArtifactsError = nil, 0, false, why
				return tx.Runs().Update(gone)
			})
		}
		if err != nil {
			e.collectFailed(ctx, err)
			return
		}
		if gone == nil {
			return
		}
		e.removeArtifacts(gone.ID)
	}
}
