// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

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

// Latest stands for the latest run whose artifacts were copied out.
const Latest = "latest"

// ArtifactRun returns the run whose artifacts are meant: by the name of its sandbox, a
// key or an id, which may be gone, and by its id or Latest.
func (r *Runner) ArtifactRun(ctx context.Context, c access.Caller, of, id string) (*sandbox.Run, error) {
	_, leave, err := r.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	if id != Latest {
		run, err := r.own(ctx, c, id)
		if err != nil {
			return nil, err
		}
		if of != run.Identifier && of != string(run.Sandbox) || !run.DroppedAt.IsZero() {
			return nil, noRun(id)
		}
		return run, nil
	}
	q := queryOf(c, of)
	q.Kept, q.Limit = true, 1
	var found *sandbox.Run
	err = r.store.View(ctx, func(tx store.Tx) error {
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
func (r *Runner) OpenArtifact(run *sandbox.Run, path string) (*os.File, sandbox.Artifact, error) {
	for _, a := range run.Artifacts {
		if a.Path != path || !run.ArtifactsKept {
			continue
		}
		base, err := os.OpenRoot(r.o.Artifacts.Dir)
		if err != nil {
			return nil, a, fault.Wrap(fault.Unavailable, err, "the artifacts cannot be reached")
		}
		defer base.Close()
		f, err := base.Open(filepath.Join(run.ID, filepath.FromSlash(path)))
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
func (w *worker) extract(life context.Context) error {
	run := w.record()
	if w.r.o.Artifacts.Dir == "" || run.ArtifactsKept || run.ArtifactsError != "" {
		return nil
	}
	limited, cancel := context.WithTimeout(life, extractBound)
	defer cancel()
	list, sum, err := w.copyOut(limited)
	if life.Err() != nil {
		w.r.removeArtifacts(w.id)
		return life.Err()
	}
	w.r.o.Checkpoint("run.copied")
	if err != nil {
		w.r.removeArtifacts(w.id)
		if limited.Err() != nil {
			err = fault.New(fault.Timeout, "copying them took longer than %s", extractBound)
		}
		text := reason(err)
		return w.commit(life, change{run: func(run *sandbox.Run) { run.ArtifactsError = text }})
	}
	return w.commit(life, change{
		run:    func(run *sandbox.Run) { run.Artifacts, run.ArtifactBytes, run.ArtifactsKept = list, sum, true },
		events: []*sandbox.RunEvent{w.r.event(sandbox.RunExtracted, 0)},
	})
}

// removeArtifacts removes the files of a run, if there are any.
func (r *Runner) removeArtifacts(run string) {
	dir := r.o.Artifacts.Dir
	if dir == "" || !sandbox.ValidRunID(run) {
		return
	}
	base, err := os.OpenRoot(dir)
	if err != nil {
		if !os.IsNotExist(err) {
			r.o.Logger.Error("the artifacts cannot be reached", "error", err)
		}
		return
	}
	defer base.Close()
	for _, n := range []string{run, run + partSuffix, run + linkSuffix} {
		if err := base.RemoveAll(n); err != nil {
			r.o.Logger.Error("the artifacts of a run cannot be removed; the next start does it", "run", run, "error", err)
		}
	}
}

// sweepArtifacts removes what no record owns: what a crash left.
func (r *Runner) sweepArtifacts(ctx context.Context) {
	entries, err := os.ReadDir(r.o.Artifacts.Dir)
	if err != nil {
		return // there is none, or the next run says why
	}
	for _, entry := range entries {
		id := entry.Name()[:min(len(entry.Name()), len("00000000-0000-0000-0000-000000000000"))]
		if !sandbox.ValidRunID(id) || r.worker(id) != nil {
			continue
		}
		kept := false
		err := r.store.View(ctx, func(tx store.Tx) error {
			run, err := tx.Runs().Get(id)
			kept = err == nil && (run.ArtifactsKept && entry.Name() == id || !run.State.Ended())
			if fault.Is(err, fault.NotFound) {
				err = nil
			}
			return err
		})
		if err != nil {
			r.collectFailed(ctx, err)
			return
		}
		if !kept {
			r.removeArtifacts(id)
		}
	}
}

// evictArtifacts takes artifacts away, the oldest run's first, while all together are
// too many.
func (r *Runner) evictArtifacts(ctx context.Context) {
	const why = "they were collected: the artifacts of newer runs needed the room"
	r.takeArtifacts(ctx, store.RunQuery{}, why, func(tx store.Tx) (bool, error) {
		sum, _, err := tx.Runs().Held()
		return sum > r.o.Artifacts.Total, err
	})
}

// takeArtifacts takes the artifacts of the runs of a query away, the oldest's first,
// while more says so. The runs stay, and tell why.
func (r *Runner) takeArtifacts(ctx context.Context, q store.RunQuery, why string, more func(store.Tx) (bool, error)) {
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
		err := r.store.View(ctx, look) // mostly there is nothing to write
		if err == nil && gone == nil {
			return
		}
		if err == nil {
			err = r.store.Update(ctx, func(tx store.Tx) error {
				if err := look(tx); err != nil || gone == nil {
					return err
				}
				gone.Artifacts, gone.ArtifactBytes, gone.ArtifactsKept, gone.ArtifactsError = nil, 0, false, why
				return tx.Runs().Update(gone)
			})
		}
		if err != nil {
			r.collectFailed(ctx, err)
			return
		}
		if gone == nil {
			return
		}
		r.removeArtifacts(gone.ID)
	}
}
