// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// work is a build in progress: its directory and its state so far. It belongs to the one
// goroutine that builds.
type work struct {
	// dir is DIR/NAME/.building, root its rootfs, cache DIR/cache.
	dir, root, cache string
	lock             *lock
	authorities      []byte // in PEM, that it trusts besides the host's; nil: none
	state            state
	// from and span place the current stage on the whole progress.
	from, span float64
	// report informs the store; lines is the current stage's last output.
	report func(stage, text string, progress float64)
	lines  *tail
	text   io.Writer // gets all of that; nil: nowhere
	log    *slog.Logger
	saved  time.Time
}

// state is .building/state.json: what a later build needs to go on, and what another process
// shows as progress during this one.
type state struct {
	Recipe   string            `json:"recipe"`
	Started  time.Time         `json:"started"`
	Done     []string          `json:"done"`
	Resolved map[string]string `json:"resolved"`
	Stage    string            `json:"stage"`
	Text     string            `json:"text"`
	Progress float64           `json:"progress"`
}

const (
	workName  = ".building"
	trashName = ".trash"
	stateName = "state.json"

	// resumable bounds how old a killed build may be that is continued: later
	// its packages are better resolved anew.
	resumable = 24 * time.Hour
)

// openWork continues the killed build in dir, or begins a new one. The caller
// holds the lock.
func openWork(dir, cache, recipeHash string, l *lock, log *slog.Logger) (*work, error) {
	w := &work{dir: dir, root: filepath.Join(dir, rootName), cache: cache, lock: l, lines: new(tail), log: log}
	st, err := readState(dir)
	if err == nil && st.fits(recipeHash) {
		w.state = st
		return w, nil
	}
	if err := discard(dir); err != nil {
		return nil, err
	}
	// Only this user may reach the setuid programs of an image. It is set here
	// also, since the directory of images may be the caller's.
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	w.state = state{Recipe: recipeHash, Started: time.Now().UTC()}
	return w, w.save()
}

func (s state) fits(recipeHash string) bool {
	age := time.Since(s.Started)
	return s.Recipe == recipeHash && age >= 0 && age < resumable
}

// resolved records an exact version that goes into the image's digest.
func (w *work) resolved(key, value string) {
	if w.state.Resolved == nil {
		w.state.Resolved = make(map[string]string)
	}
	w.state.Resolved[key] = value
}

func (w *work) done(stage string) bool { return slices.Contains(w.state.Done, stage) }

func (w *work) finish(stage string) error {
	w.state.Done = append(w.state.Done, stage)
	return w.save()
}

// progress reports how far the current stage is, from 0 to 1. It never goes back.
func (w *work) progress(part float64, text string) {
	w.state.Text = text
	w.state.Progress = max(w.state.Progress, w.from+w.span*min(max(part, 0), 1))
	w.report(w.state.Stage, text, w.state.Progress)
	if time.Since(w.saved) >= time.Second {
		// Only a display in another process reads it in between; what resuming
		// needs is saved where its error counts.
		_ = w.save()
	}
}

func (w *work) save() error {
	w.saved = time.Now()
	data, err := json.Marshal(w.state)
	if err != nil {
		return err
	}
	path := filepath.Join(w.dir, stateName)
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func readState(dir string) (state, error) {
	data, err := os.ReadFile(filepath.Join(dir, stateName))
	if err != nil {
		return state{}, err
	}
	var st state
	if err := json.Unmarshal(data, &st); err != nil {
		return state{}, err
	}
	return st, nil
}

// discard removes a work directory. It is renamed first, so that a kill in
// the middle does not leave half a tree under a name that could be continued.
func discard(dir string) error {
	trash := filepath.Join(filepath.Dir(dir), trashName)
	if err := os.RemoveAll(trash); err != nil {
		return err
	}
	err := os.Rename(dir, trash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(trash)
}

// run does the recipe's stages that are not done yet.
func (w *work) run(ctx context.Context, r recipe) error {
	var total, before float64
	for _, st := range r.Stages {
		total += st.Weight
	}
	for _, st := range r.Stages {
		w.from, w.span = before/total, st.Weight/total
		before += st.Weight
		if w.done(st.Name) {
			continue
		}
		w.state.Stage = st.Name
		w.lines = &tail{copy: w.text}
		if w.text != nil {
			fmt.Fprintf(w.text, "== %s\n", st.Name)
		}
		w.progress(0, st.Name)
		err := ctx.Err()
		if err == nil {
			err = st.Run(ctx, w)
		}
		if err == nil {
			err = w.finish(st.Name)
		}
		if err != nil {
			return &BuildError{Image: r.Name, Stage: st.Name, Output: w.lines.lines(), Err: err}
		}
	}
	return nil
}

// BuildError says which stage of a build failed, with what its programs said
// last: at most 40 lines of at most 400 bytes.
type BuildError struct {
	Image, Stage string
	Output       []string
	Err          error
}

func (e *BuildError) Error() string {
	msg := fmt.Sprintf("building the image %s failed in stage %q: %v", e.Image, e.Stage, e.Err)
	for _, line := range e.Output {
		msg += "\n  " + line
	}
	return msg
}

func (e *BuildError) Unwrap() error { return e.Err }
