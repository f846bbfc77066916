// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// The steps of a template are done in a sandbox of the project, with the network and the limits that the
// template gives: what a project's sandboxes may not reach, its templates may not either. The disk is kept as
// a snapshot then, and the sandbox is deleted.
const (
	buildLabel  = "sandpit-template-build"
	buildLife   = 2 * time.Hour // a clock deletes what nothing else does
	buildBound  = 90 * time.Minute
	stepBound   = time.Hour
	brokenOff   = "the build was broken off: the template was deleted"
	serverEnded = "the server ended while the template was built; create it again"
	keepDisk    = 24 * time.Hour // that a disk is taken over by a version with the same steps
)

// scrub removes what is not to be in every sandbox that is made of a disk.
const scrub = `rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/* /root/.cache /tmp/* /var/tmp/*
find /var/log -xdev -type f -exec truncate -s 0 {} + 2>/dev/null
if [ -s /etc/machine-id ]; then : > /etc/machine-id; fi
true`

// building is a build that goes on, or is about to.
type building struct {
	broken     context.Context // done when the version is deleted
	stop       func()          // ends broken
	done       chan struct{}   // closed once what became of it is recorded
	dockerfile bool
}

// announce notes that a version will be built, before others can find it: who finds it Building finds what to wait for, and who
// deletes it what to break off. Announcing it again changes nothing.
func (s *Service) announce(t *template.Template) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dockerfile := t.Spec.Dockerfile != ""
	switch {
	case s.builds[t.ID] != nil:
		return nil
	case dockerfile && s.making >= mostBuilds:
		return fault.New(fault.Exhausted, "%d Dockerfiles of templates are built, or wait, already", mostBuilds).WithRemedy("wait until one is done, and try again")
	case dockerfile:
		s.making++
	}
	broken, stop := context.WithCancel(context.Background())
	s.builds[t.ID] = &building{broken: broken, stop: stop, done: make(chan struct{}), dockerfile: dockerfile}
	return nil
}

// over notes that a version is not built any more, if it was announced.
func (s *Service) over(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.builds[id]
	if b == nil {
		return
	}
	delete(s.builds, id)
	close(b.done)
	if b.dockerfile {
		s.making--
	}
}

// builderOf is who builds for a project.
func builderOf(project string) access.Caller {
	return access.Caller{Project: project, Actor: "the build of a template", Via: "system", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
}

// build makes the disk or the image of a version that is announced, in the background. It owns files.
func (s *Service) build(by access.Caller, t template.Template, files io.ReadCloser, made func()) {
	cause := fault.New(fault.Conflict, "%s", brokenOff)
	s.mu.Lock()
	broken := s.builds[t.ID].broken
	s.mu.Unlock()
	s.engine.Go(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, buildBound)
		defer cancel()
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		defer context.AfterFunc(broken, func() { stop(cause) })()
		defer s.over(t.ID)
		if files != nil {
			defer func() { _ = files.Close() }()
		}
		w := &work{s: s, t: &t, c: builderOf(t.Project), by: by, files: files, made: made, log: s.openLog(t.ID)}
		defer w.log.Close()
		err := s.buildOnce(ctx, w, cause)
		if errors.Is(err, errDiskGone) {
			w.anew = true
			err = s.buildOnce(ctx, w, cause)
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			s.o.Logger.Error("what became of a template's build cannot be recorded", "template", t.ID, "error", err)
		}
	})
}

// errDiskGone is a disk that another version had, and that was deleted with it meanwhile.
var errDiskGone = errors.New("the disk was deleted")

// buildOnce does what a version needs, and records what became of it.
func (s *Service) buildOnce(ctx context.Context, w *work, cause error) error {
	t := w.t
	if err := s.engine.Store().View(ctx, func(tx store.Tx) error { _, err := tx.Templates().Get(t.ID); return err }); fault.Is(err, fault.NotFound) {
		return nil // it was deleted before there was anything to break off
	}
	disk, img, f := sandbox.ID(""), "", (*template.Failure)(nil)
	switch {
	case t.Spec.Dockerfile != "":
		img, f = w.image(ctx)
	case len(t.Spec.Steps) == 0:
		f = w.bring(ctx)
	default:
		disk, f = w.do(ctx)
		w.close(ctx)
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), cause) && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil // the engine ends, and the next server tells
	}
	t.Status, t.Snapshot, t.Image, t.Failure = template.Ready, disk, img, f
	if f != nil {
		t.Status = template.Failed
	}
	return s.finish(ctx, t)
}

func (s *Service) finish(ctx context.Context, t *template.Template) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	err := s.commit(ctx, t)
	if err != nil && !errors.Is(err, errDiskGone) {
		s.drop(ctx, t)
	}
	return err
}

// commit records what became of a build, in the turn of its disk: whoever deletes that asks before who has it.
func (s *Service) commit(ctx context.Context, t *template.Template) error {
	if t.Snapshot != "" {
		give, err := s.disks.Take(ctx, t.Snapshot)
		if err != nil {
			return err
		}
		defer give()
	}
	return s.engine.Store().Update(ctx, func(tx store.Tx) error {
		if t.Snapshot != "" {
			if _, err := tx.Snapshots().Get(t.Snapshot); fault.Is(err, fault.NotFound) {
				return errDiskGone
			} else if err != nil {
				return err
			}
		}
		return tx.Templates().Finish(t)
	})
}

// breakOff ends the build of a version, if there is one.
func (s *Service) breakOff(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.builds[id]; b != nil {
		b.stop()
	}
}

// resumeBuilds ends what an earlier server was building.
func (s *Service) resumeBuilds(ctx context.Context) error {
	var all []*template.Template
	err := s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Templates().Building()
		return err
	})
	if err != nil || len(all) == 0 {
		return err
	}
	s.engine.Go(func(ctx context.Context) {
		if s.engine.WaitReady(ctx) != nil {
			return
		}
		for _, t := range all {
			c := builderOf(t.Project)
			page, err := s.engine.List(ctx, c, engine.SandboxesRequest{Metadata: map[string]string{buildLabel: t.ID}})
			for _, b := range page.Items {
				if err == nil {
					err = s.engine.Delete(ctx, c, string(b.ID))
				}
			}
			if err != nil {
				s.o.Logger.Warn("the sandbox of a build that was broken off cannot be deleted; a clock does", "template", t.ID, "error", err)
			}
			t.Status, t.Failure = template.Failed, &template.Failure{Reason: serverEnded}
			if err := s.finish(ctx, t); err != nil && ctx.Err() == nil {
				s.o.Logger.Error("what became of a template's build cannot be recorded", "template", t.ID, "error", err)
			}
		}
	})
	return nil
}

// work is one build.
type work struct {
	s   *Service
	t   *template.Template
	c   access.Caller // who runs the steps
	by  access.Caller // who asked for it
	box sandbox.ID

	anew  bool          // no disk of another version is taken
	files io.ReadCloser // the context of a Dockerfile; nil: read, or none
	made  func()
	log   *buildLog
}

// do does the steps, and returns the disk that they made or why they did not.
func (w *work) do(ctx context.Context) (sandbox.ID, *template.Failure) {
	if disk := w.known(ctx); disk != "" {
		w.s.o.Checkpoint("template.known")
		return disk, nil
	}
	fail := func(err error) (sandbox.ID, *template.Failure) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", &template.Failure{Reason: fault.As(err).Message}
	}
	if w.s.engine.Defaults().ForbidRoot {
		return fail(fault.New(fault.Unsupported, "the steps of a template run as the root of a sandbox, and this server lets nothing do that"))
	}
	var never time.Duration
	sp := &w.t.Spec
	made, _, err := w.s.engine.Create(ctx, w.c, engine.CreateRequest{
		Image: sp.Image, Limits: sp.Limits, Env: sp.Env, Account: sp.Account, Network: sp.Network, Metadata: map[string]string{buildLabel: w.t.ID},
		IdleTimeout: &never, TTL: buildLife,
	})
	if err != nil {
		return fail(err)
	}
	w.box = made.ID
	w.s.o.Checkpoint("template.sandbox")
	for n, step := range append(slices.Clone(sp.Steps), scrub) {
		if n < len(sp.Steps) {
			w.log.say("step %d of %d: %s", n+1, len(sp.Steps), step)
		}
		if f := w.step(ctx, n+1, step); f != nil {
			if n == len(sp.Steps) {
				f.Step, f.Command = 0, ""
			}
			return "", f
		}
		w.s.o.Checkpoint("template.step")
	}
	if err := w.s.engine.KillAll(ctx, w.c, string(w.box)); err != nil {
		return fail(err)
	}
	if _, err := w.s.engine.Stop(ctx, w.c, string(w.box)); err != nil {
		return fail(err)
	}
	snap, err := w.s.engine.CreateSnapshot(ctx, w.c, string(w.box), engine.SnapshotRequest{Name: "template-" + strings.ReplaceAll(w.t.Ref(), "@", "-v")})
	if err != nil {
		return fail(err)
	}
	return snap.ID, nil
}

// step does one step; nil: it went well.
func (w *work) step(ctx context.Context, n int, command string) *template.Failure {
	var out []byte
	res, err := w.s.engine.Exec(ctx, w.c, string(w.box), engine.ExecRequest{
		Shell: command, User: sandbox.UserRoot, Cwd: "/root", KillOnDisconnect: true, Lossless: true,
		Env:     map[string]string{"DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"},
		Timeout: min(stepBound, w.s.engine.Defaults().MaxCommandTimeout),
	}, func(f sandbox.Frame) error {
		_, _ = w.log.Write(f.Data)
		out = last(append(out, f.Data...), template.MaxOutput)
		return nil
	})
	f := &template.Failure{Step: n, Command: sandbox.Clip(command, 500), ExitCode: res.ExitCode, Output: strings.ToValidUTF8(string(out), "\uFFFD")}
	switch {
	case err != nil && ctx.Err() != nil:
		f.Reason = fault.As(context.Cause(ctx)).Message
	case err != nil:
		f.Reason = fault.As(err).Message
	case res.Cause != sandbox.CauseNone:
		f.Reason = strings.TrimSuffix(fmt.Sprintf("the step was ended (%s): %s", res.Cause, res.CauseDetail), ": ")
	case res.ExitCode != 0:
		f.Reason = fmt.Sprintf("the step ended with exit code %d", res.ExitCode)
	default:
		return nil
	}
	return f
}

// known returns the disk of another version that the same steps made of late, which this one has, too.
func (w *work) known(ctx context.Context) (disk sandbox.ID) {
	if w.anew {
		return ""
	}
	err := w.s.engine.Store().View(ctx, func(tx store.Tx) error {
		all, err := tx.Templates().List(w.t.Project)
		for _, t := range all {
			a, b := &t.Spec, &w.t.Spec
			if t.Status == template.Ready && t.Snapshot != "" && slices.Equal(a.Steps, b.Steps) && a.Image == b.Image &&
				reflect.DeepEqual(a.Env, b.Env) && reflect.DeepEqual(a.Account, b.Account) && reflect.DeepEqual(a.Network, b.Network) && a.Limits == b.Limits && w.t.CreatedAt.Sub(t.CreatedAt) < keepDisk {
				if _, err := tx.Snapshots().Get(t.Snapshot); err == nil {
					disk = t.Snapshot
				}
			}
		}
		return err
	})
	if err != nil {
		return ""
	}
	return disk
}

// close deletes the sandbox of the build.
func (w *work) close(ctx context.Context) {
	if w.box == "" {
		return
	}
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	if err := w.s.engine.Delete(ctx, w.c, string(w.box)); err != nil && !fault.Is(err, fault.NotFound) {
		w.s.o.Logger.Warn("the sandbox of a template's build cannot be deleted; a clock does", "sandbox", w.box, "error", err)
	}
}
