// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// maxBuildTime ends a build that hangs. The python image takes a minute or two.
const maxBuildTime = time.Hour

// build is one build in progress, shared by all who wait for it.
type build struct {
	cancel context.CancelFunc
	done   chan struct{}
	anew   bool // also where there is a current one

	// Guarded by Store.mu.
	stage, text string
	progress    float64
	logs        bool // its log is begun

	// Written before done is closed, read after.
	img Image
	err error
}

// Ensure returns the image for a name, and builds it if it is missing. Callers during the build
// share it, also with other processes on the same directory. The build belongs to the store: it
// goes on when ctx ends, and ends with Close. A failed build is an error for every caller that
// waited; the next call tries again.
func (s *Store) Ensure(ctx context.Context, name string) (Image, error) {
	name = s.orDefault(name)
	r, resolveErr := s.resolve(name)
	if resolveErr == nil {
		name = r.Name
	}
	img, err := s.Find(ctx, name)
	if resolveErr != nil || !fault.Is(err, fault.NotFound) {
		return img, err // nothing here builds an image of others
	}
	return s.await(ctx, r, false)
}

// Rebuild builds an image as Ensure does, also where there is a current one, which stays in use
// meanwhile, and for the sandboxes that have it. Where a build goes on it is that.
func (s *Store) Rebuild(ctx context.Context, name string) (Image, error) {
	r, err := s.resolve(name)
	if err != nil {
		return Image{}, err
	}
	return s.await(ctx, r, true)
}

// await joins the build of r or begins one, and waits for it.
func (s *Store) await(ctx context.Context, r recipe, anew bool) (Image, error) {
	for {
		b, err := s.start(ctx, r, anew)
		if err != nil {
			return Image{}, err
		}
		if b == nil {
			if _, err := s.awaitLeaving(ctx, r.Name); err != nil {
				return Image{}, err
			}
			if !anew { // what was being removed may have stayed
				if img, err := s.Find(ctx, r.Name); !fault.Is(err, fault.NotFound) {
					return img, err
				}
			}
			continue
		}
		select {
		case <-b.done:
			return b.img, b.err
		case <-ctx.Done():
			return Image{}, ctx.Err()
		}
	}
}

// start joins the build of r or begins one. It returns nil while builds of it are being removed.
func (s *Store) start(ctx context.Context, r recipe, anew bool) (*build, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving[r.Name] != nil {
		return nil, nil
	}
	if b := s.builds[r.Name]; b != nil {
		return b, nil
	}
	b := &build{cancel: func() {}, done: make(chan struct{}), anew: anew}
	if img, ok := s.ready[r.Name]; ok && !anew {
		// It was finished since the caller looked.
		b.img = img
		close(b.done)
		return b, nil
	}
	if s.closed {
		return nil, closedError()
	}
	ctx, b.cancel = context.WithTimeout(context.WithoutCancel(ctx), maxBuildTime)
	s.builds[r.Name] = b
	s.wg.Go(func() {
		defer b.cancel()
		do := s.build
		if r.made != nil {
			do = s.buildSandboxed
		}
		img, err := do(ctx, r, b)
		if err == nil {
			if err = s.keep(img); err != nil {
				err = fault.Wrap(fault.Unavailable, err, "the image %q was removed by another server as soon as it was built", r.Name)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.builds, r.Name)
		delete(s.stale, r.Name)
		switch {
		case err == nil:
			s.ready[r.Name] = img
			delete(s.failed, r.Name)
			s.changed()
		case s.closed:
			err = closedError()
		case b.anew && s.ready[r.Name].Name != "":
			s.stale[r.Name] = err
		default:
			s.failed[r.Name] = err
		}
		b.img, b.err = img, err
		close(b.done)
	})
	return b, nil
}

func closedError() error {
	return fault.New(fault.Unavailable, "the server is stopping, so it builds no image").
		WithRemedy("try again when it runs; the build goes on where it was")
}

// build makes the image of r, or finds that another process made it.
func (s *Store) build(ctx context.Context, r recipe, b *build) (Image, error) {
	began := time.Now()
	work := filepath.Join(s.dir, r.Name, workName)
	l, err := waitLock(ctx, s.dir, func() {
		st, err := readState(work)
		if err != nil {
			st = state{Stage: "waiting", Text: "another process is building"}
		}
		s.report(b, r.Name, st.Stage, st.Text, st.Progress)
	})
	if err != nil {
		return Image{}, err
	}
	defer l.release()
	if !b.anew {
		if img, err := s.current(r); !fault.Is(err, fault.NotFound) {
			return img, err
		}
	}
	s.log.Info("building an image", "image", r.Name, "dir", s.dir)
	w, err := openWork(work, filepath.Join(s.dir, "cache"), r.hash(), l, s.log)
	if err != nil {
		return Image{}, buildFault(r.Name, err)
	}
	text, err := s.openLog(r.Name, b)
	if err != nil {
		return Image{}, buildFault(r.Name, err)
	}
	defer text.Close()
	w.authorities, w.text = s.authorities, text
	w.report = func(stage, text string, progress float64) { s.report(b, r.Name, stage, text, progress) }
	if err := w.run(ctx, r); err != nil {
		s.log.Error("building an image failed", "image", r.Name, "error", err)
		return Image{}, buildFault(r.Name, err)
	}
	img, err := w.publish(ctx, r)
	if err != nil {
		s.log.Error("finishing an image failed", "image", r.Name, "error", err)
		return Image{}, buildFault(r.Name, err)
	}
	s.log.Info("built an image", "image", r.Name, "digest", img.Digest, "seconds", time.Since(began).Seconds(), "bytes", img.SizeBytes)
	return img, nil
}

func (s *Store) report(b *build, name, stage, text string, progress float64) {
	s.mu.Lock()
	changed := b.stage != stage
	b.stage, b.text = stage, text
	b.progress = max(b.progress, progress)
	s.mu.Unlock()
	if changed {
		s.log.Info("building an image", "image", name, "stage", stage)
	}
}

// publish inspects the finished root and names it, atomically.
func (w *work) publish(ctx context.Context, r recipe) (Image, error) {
	w.state.Stage = "inspect"
	w.lines = &tail{copy: w.text}
	w.from, w.span = 1, 0
	w.progress(0, "reading the versions that are inside")
	found, err := r.Inspect(ctx, w)
	if err != nil {
		return Image{}, &BuildError{Image: r.Name, Stage: "inspect", Output: w.lines.lines(), Err: err}
	}
	size, files, err := measure(w.root)
	if err != nil {
		return Image{}, err
	}
	return place(w.dir, manifest{
		Schema: manifestSchema, Name: r.Name, Digest: digest(w.state.Recipe, w.state.Resolved), Recipe: w.state.Recipe,
		Created: time.Now().UTC(), SizeBytes: size, Files: files, Versions: found.Versions, Absent: found.Absent, Env: r.Env,
	})
}

// place names the finished image in the work directory dir, atomically.
func place(dir string, m manifest) (Image, error) {
	if err := m.write(dir); err != nil {
		return Image{}, err
	}
	hex, err := digestHex(m.Digest)
	if err != nil {
		return Image{}, err
	}
	final := filepath.Join(filepath.Dir(dir), hex[:digestDir])
	if _, err := load(final); err == nil {
		// The very same versions were built before, by the same recipe.
		if err := discard(dir); err != nil {
			return Image{}, err
		}
		return load(final)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Image{}, err
	}
	for _, e := range entries {
		if e.Name() != rootName && e.Name() != manifestName && e.Name() != buildLogName {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return Image{}, err
			}
		}
	}
	if err := syncDir(dir, true); err != nil {
		return Image{}, err
	}
	if err := os.Rename(dir, final); err != nil {
		return Image{}, err
	}
	if err := syncDir(filepath.Dir(final), false); err != nil {
		return Image{}, err
	}
	return load(final)
}

// syncDir flushes a directory, or all of its file system: a power cut must
// not leave a published image with empty files.
func syncDir(dir string, all bool) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if all {
		return unix.Syncfs(int(f.Fd()))
	}
	return f.Sync()
}

// buildFault sets the code of a failed build where the cause is known.
func buildFault(name string, err error) error {
	if fe, ok := errors.AsType[*fault.Error](err); ok {
		return fe
	}
	stage, last := "finish", ""
	if be, ok := errors.AsType[*BuildError](err); ok {
		stage = be.Stage
		if slices.ContainsFunc(be.Output, func(line string) bool {
			return strings.Contains(line, unix.ENOSPC.Error()) || strings.Contains(line, "No space left on device")
		}) {
			err = fmt.Errorf("%w: %w", unix.ENOSPC, err)
		}
		if len(be.Output) > 0 {
			last = ": " + be.Output[len(be.Output)-1]
		}
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.NoSpace(fault.HostDisk, err, "building the image %q failed in stage %q: the disk is full", name, stage).
			WithRemedy("free 2 GiB where images are kept, then try again; what was downloaded is kept")
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Timeout, err, "building the image %q took longer than %s and was ended in stage %q%s", name, maxBuildTime, stage, last).
			WithRemedy("look for what hangs in the output of: sandpit image ls; then try again")
	case errors.Is(err, context.Canceled):
		return fault.Wrap(fault.Canceled, err, "building the image %q was ended in stage %q", name, stage)
	}
	return fault.Wrap(fault.Unavailable, err, "building the image %q failed in stage %q%s", name, stage, last).
		WithRemedy("look at the last lines with: sandpit image ls; mend the cause (most often the network), then try again")
}
