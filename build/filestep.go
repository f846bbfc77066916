// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/image/entry"
	"sandpit.dev/sandbox"
)

// finish does the steps of a stage that are not kept, and those of stages that they need. Its disk is that of kept then.
func (b *fileBuild) finish(ctx context.Context, st *stage) error {
	if st.ended {
		return nil
	}
	first := 0
	for i := len(st.keys) - 1; i >= 0 && first == 0; i-- {
		if snap := b.cached[stepName(st.keys[i])]; snap != nil && snap.ImageDigest == st.job.Base.Digest {
			st.kept, first = snap.ID, i+1
		}
	}
	for i := range first {
		b.step(st, i, true)
	}
	if first == 0 && st.parent != nil {
		if err := b.finish(ctx, st.parent); err != nil {
			return err
		}
		st.kept = st.parent.kept
	}
	for _, s := range st.plan.Steps[first:] {
		if s.Kind == dockerfile.Copy && s.Stage >= 0 {
			if err := b.finish(ctx, b.stages[s.Stage]); err != nil {
				return err
			}
		}
	}
	for i := first; i < len(st.keys); i++ {
		if err := b.do(ctx, st, i); err != nil {
			return err
		}
		b.s.o.Checkpoint("build.step")
	}
	st.ended = true
	return nil
}

// step tells which step comes.
func (b *fileBuild) step(st *stage, i int, kept bool) {
	s := &st.plan.Steps[i]
	n := st.first + i + 1
	b.at = max(b.at, float64(n-1)/float64(b.steps+1))
	b.tell(dockerfile.Event{Stage: fmt.Sprintf("step %d of %d", n, b.steps), Text: s.Title, Progress: b.at, Step: n, Steps: b.steps, Line: s.Line, Kept: kept})
}

// do does one step and keeps what it made.
func (b *fileBuild) do(ctx context.Context, st *stage, i int) error {
	s := &st.plan.Steps[i]
	var from *stage
	if s.Stage >= 0 && s.Kind == dockerfile.Copy {
		from = b.stages[s.Stage]
	} else if s.From != "" {
		from = b.others[s.From]
	}
	b.step(st, i, false)
	err := b.open(ctx, st)
	if err == nil && from != nil {
		err = b.open(ctx, from)
	}
	if err == nil {
		switch s.Kind {
		case dockerfile.Run:
			err = b.run(ctx, st, s)
		case dockerfile.Dir:
			err = b.dir(ctx, st, s.Dir)
		case dockerfile.Copy:
			err = b.copyFiles(ctx, st, from, s)
		}
	}
	if err != nil {
		return atLine(s, err)
	}
	snap, err := st.keep(ctx, stepName(st.keys[i]))
	if err != nil {
		return atLine(s, err)
	}
	st.kept = snap.ID
	return nil
}

// atLine is an error of a step with the number of its line.
func atLine(s *dockerfile.Step, err error) error {
	fe := fault.As(err)
	out := fault.Wrap(fe.Code, err, "line %d of the Dockerfile: %s: %s", s.Line, s.Title, fe.Message)
	out.Remedy = fe.Remedy
	return out
}

// open starts the sandbox of a stage, or creates it.
func (b *fileBuild) open(ctx context.Context, st *stage) error {
	if st.box == "" {
		r := engine.CreateRequest{Image: st.job.Base.Name}
		if st.kept != "" {
			r = engine.CreateRequest{From: string(st.kept)}
		}
		if err := st.create(ctx, r); err != nil {
			if st.kept != "" && fault.Is(err, fault.NotFound) {
				return fault.Wrap(fault.Conflict, err, "a step that was kept of an earlier build is gone").WithRemedy("build again")
			}
			return err
		}
	}
	return st.ready(ctx, nil)
}

// run does a RUN.
func (b *fileBuild) run(ctx context.Context, st *stage, s *dockerfile.Step) error {
	who, err := b.account(ctx, st, s.User)
	if err != nil {
		return err
	}
	if err := b.dir(ctx, st, s.Dir); err != nil {
		return err
	}
	env := maps.Clone(s.Env)
	for _, name := range []string{"USER", "LOGNAME", "PWD", "HOSTNAME"} {
		delete(env, name) // the account's
	}
	if who.env != nil {
		home := env["HOME"]
		maps.Copy(env, who.env)
		if home != "" {
			env["HOME"] = home
		}
	}
	err = st.run(ctx, entry.Step{Title: "it", User: who.as, Dir: s.Dir, Env: env, Timeout: fileBound}, slices.Concat(who.prefix, s.Argv))
	if fe := fault.As(err); err != nil && fe.Code == fault.Unavailable && fe.Remedy != "" {
		return fe.WithRemedy("its output says why; mend it and build again: what was done before it is kept")
	}
	return err
}

// dir makes a directory of the root's, and those above it, unless it is there.
func (b *fileBuild) dir(ctx context.Context, st *stage, name string) error {
	if name == "/" {
		return nil
	}
	client, release, err := b.s.engine.Connect(ctx, caller(), access.SandboxesWrite, string(st.box), "a build")
	if err != nil {
		return err
	}
	defer release()
	return client.Mkdir(ctx, name, sandbox.MakeDirOptions{User: sandbox.UserRoot, Parents: true})
}
