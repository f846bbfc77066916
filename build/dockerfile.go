// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/image/entry"
	"sandpit.dev/sandbox"
)

// Images is what builds of Dockerfiles need of the images; *image.Store has it.
type Images interface {
	Ensure(ctx context.Context, name string) (image.Image, error)
	Pull(ctx context.Context, reference, project string) (image.Status, error)
	Scratch(ctx context.Context) (image.Image, error)
	Commit(ctx context.Context, c image.Commit) (image.Status, error)
	// Making has a build be seen under the name of its image until done is called.
	Making(name string) (report func(stage, text string, progress float64), done func(), err error)
	Spool() (*os.File, error)
	// Room returns why the disk of images takes nothing more, or nil.
	Room() error
}

// fileBound ends the build of a Dockerfile.
const fileBound = time.Hour

// fileBuild is the build of one Dockerfile. It belongs to one goroutine.
type fileBuild struct {
	owner   string // the project that it is for; "": the server
	s       *Service
	r       dockerfile.Request
	tell    func(dockerfile.Event)
	context *dockerfile.Context
	file    *dockerfile.File
	stages  map[int]*stage
	others  map[string]*stage // images that COPY takes from
	cached  map[string]*sandbox.Snapshot
	steps   int // of all stages that were looked at
	at      float64
}

// stage is one stage of a build, or an image that COPY takes from.
type stage struct {
	*work
	parent *stage // nil: it begins with its image
	plan   *dockerfile.Plan
	keys   []string // of its steps, see key
	first  int      // number of its first step among those of all stages, from 0
	ended  bool
}

// key is what decides the files of a stage at its end.
func (st *stage) key() string {
	if n := len(st.keys); n > 0 {
		return st.keys[n-1]
	}
	if st.parent != nil {
		return st.parent.key()
	}
	return keyOf("dockerfile/1", st.job.Base.Digest)
}

func keyOf(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // texts, numbers and maps of texts can be written
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// BuildDockerfile makes an image of a Dockerfile in a context, which is an archive, compressed or not. It tells what goes
// on, one event at a time, and ends with ctx. A step that fails ends it, with the number of its line; nothing is left then
// but the steps that were done, for the next build, for a day. It is for administrators.
func (s *Service) BuildDockerfile(ctx context.Context, c access.Caller, archive io.Reader, r dockerfile.Request, tell func(dockerfile.Event)) (image.Status, error) {
	ctx, leave, err := s.engine.Enter(ctx, c, access.Admin)
	if err != nil {
		return image.Status{}, err
	}
	defer leave()
	if s.o.Images == nil {
		return image.Status{}, fault.New(fault.Unsupported, "this server builds no Dockerfiles")
	}
	if s.engine.Defaults().ForbidRoot {
		return image.Status{}, fault.New(fault.Unsupported, "the steps of a Dockerfile run as the root of a sandbox, and this server lets nothing do that").
			WithRemedy("set allow_root, or build it elsewhere and use: sandpit image import FILE")
	}
	select {
	case s.contexts <- struct{}{}:
		defer func() { <-s.contexts }()
	default: // each has its context on the disk
		return image.Status{}, fault.New(fault.Exhausted, "%d builds of Dockerfiles go on or wait already", mostContexts).
			WithRemedy("wait until one has ended, and try again")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fileBound, fault.New(fault.Timeout, "the build took longer than %v and was ended", fileBound).
		WithRemedy("build again: it goes on behind the last step that was done"))
	defer cancel()
	b := &fileBuild{s: s, r: r, owner: c.Owner(), tell: tell, stages: make(map[int]*stage), others: make(map[string]*stage)}
	defer b.close()
	made, err := b.build(ctx, archive)
	return made, cause(ctx, err)
}

func (b *fileBuild) build(ctx context.Context, archive io.Reader) (image.Status, error) {
	if err := b.read(ctx, archive); err != nil {
		return image.Status{}, err
	}
	name := b.r.Name
	if name != "" {
		report, done, err := b.s.o.Images.Making(name)
		if err != nil {
			return image.Status{}, err
		}
		defer done()
		tell := b.tell
		b.tell = func(e dockerfile.Event) {
			if e.Output == nil {
				report(e.Stage, e.Text, e.Progress)
			}
			tell(e)
		}
	}
	b.say("waiting", "waiting for other builds")
	w := &work{s: b.s}
	defer w.close()
	for _, wait := range []func() (bool, error){w.awaitSweep(ctx), w.awaitSlot(ctx)} {
		if ok, err := wait(); !ok {
			return image.Status{}, err
		}
	}
	if err := b.look(ctx); err != nil {
		return image.Status{}, err
	}
	last, err := b.prepare(ctx, b.file.Target)
	if err != nil {
		return image.Status{}, err
	}
	if err := b.finish(ctx, last); err != nil {
		return image.Status{}, err
	}
	c := image.Commit{Name: name, Base: last.job.Base, Content: last.key(), Config: last.plan.State.Config, Project: b.owner}
	if snap := last.kept; snap != "" {
		c.Content += "/" + string(snap)
		c.Layer = func(ctx context.Context, to io.Writer) error {
			return b.s.engine.ExportSnapshot(ctx, caller(), "", string(snap), to)
		}
	}
	b.say("keep", "keeping the result")
	made, err := b.s.o.Images.Commit(ctx, c)
	if err != nil {
		return image.Status{}, err
	}
	if err := b.s.prune(ctx); err != nil {
		b.s.o.Logger.Warn("old steps of builds cannot be deleted", "error", err)
	}
	return made, nil
}

// read reads the context and the Dockerfile in it.
func (b *fileBuild) read(ctx context.Context, archive io.Reader) error {
	spool, err := b.s.o.Images.Spool()
	if err != nil {
		return err
	}
	if b.context, err = dockerfile.ReadContext(ctx, archive, spool, dockerfile.Limits{Room: b.s.o.Images.Room}); err != nil {
		return err
	}
	name := b.r.Dockerfile
	if name == "" {
		name = "Dockerfile"
	}
	text, err := b.context.Dockerfile(ctx, name)
	if err != nil {
		return err
	}
	b.file, err = dockerfile.Parse(text, dockerfile.Options{Args: b.r.Args, Target: b.r.Target, Arch: runtime.GOARCH})
	return err
}

// look finds the steps that are kept.
func (b *fileBuild) look(ctx context.Context) error {
	b.cached = make(map[string]*sandbox.Snapshot)
	if b.r.Anew {
		return nil
	}
	all, err := b.s.steps(ctx)
	if err != nil {
		return err
	}
	now := b.s.engine.Now()
	for _, snap := range all {
		if now.Sub(snap.CreatedAt) < keepSteps && b.cached[snap.Name] == nil {
			b.cached[snap.Name] = snap
		}
	}
	return nil
}

// say tells where the build is.
func (b *fileBuild) say(at, text string) {
	b.tell(dockerfile.Event{Stage: at, Text: text, Progress: b.at})
}

// Write takes what a step writes.
func (b *fileBuild) Write(p []byte) (int, error) {
	b.tell(dockerfile.Event{Output: p})
	return len(p), nil
}

func (b *fileBuild) close() {
	for _, st := range b.stages {
		st.close()
	}
	for _, st := range b.others {
		st.close()
	}
	if b.context != nil {
		_ = b.context.Close()
	}
}

// job is what a sandbox of the build is made for.
func (b *fileBuild) job(base image.Image) image.Job {
	name := b.r.Name
	if name == "" {
		name = "Dockerfile"
	}
	return image.Job{Name: name, Base: base, Log: b, Report: func(string, string, float64) {}}
}

// presets returns those of package tools that stand for a host here: what an image does not have, and this host neither,
// is set to nothing.
func (b *fileBuild) presets(ctx context.Context, base image.Image) ([]string, error) {
	all, _, err := b.s.engine.Presets(ctx, caller(), base.Name)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range all {
		if len(p.Domains) > 0 && slices.Contains(entry.Presets(), p.Name) {
			out = append(out, p.Name)
		}
	}
	return out, nil
}

// prepare returns a stage with the keys of its steps, and those that it needs.
func (b *fileBuild) prepare(ctx context.Context, index int) (*stage, error) {
	if st := b.stages[index]; st != nil {
		return st, nil
	}
	at := &b.file.Stages[index]
	st := &stage{}
	var state dockerfile.State
	if at.Parent >= 0 {
		parent, err := b.prepare(ctx, at.Parent)
		if err != nil {
			return nil, err
		}
		st.parent, state = parent, parent.plan.State
		st.work = &work{s: b.s, job: parent.job}
	} else {
		base, err := b.base(ctx, at.Line, at.From)
		if err != nil {
			return nil, err
		}
		state.Config = base.Config()
		st.work = &work{s: b.s, job: b.job(base)}
		if st.job.Presets, err = b.presets(ctx, base); err != nil {
			return nil, err
		}
	}
	var err error
	if st.host, err = b.s.o.Host(); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the settings of this host's package tools cannot be read")
	}
	if st.plan, err = b.file.Plan(index, state); err != nil {
		return nil, err
	}
	key := st.key()
	for i := range st.plan.Steps {
		s := &st.plan.Steps[i]
		from, err := b.sources(ctx, s)
		if err != nil {
			return nil, err
		}
		key = keyOf(key, s, from)
		st.keys = append(st.keys, key)
	}
	st.first = b.steps
	b.steps += len(st.plan.Steps)
	b.stages[index] = st
	return st, nil
}

// base returns the image of a FROM, or of a COPY.
func (b *fileBuild) base(ctx context.Context, line int, name string) (image.Image, error) {
	b.say("base", "looking for the image "+name)
	images := b.s.o.Images
	if name == dockerfile.Scratch {
		return images.Scratch(ctx)
	}
	img, err := images.Ensure(ctx, name)
	if fault.Is(err, fault.NotFound) {
		b.say("base", "pulling the image "+name)
		if _, perr := images.Pull(ctx, name, b.owner); perr != nil {
			fe := fault.As(perr)
			return image.Image{}, fault.Wrap(fe.Code, perr, "line %d of the Dockerfile: the image %q is not here, and cannot be pulled: %s", line, name, fe.Message).
				WithRemedy("bring it with: sandpit image pull %s; or with: sandpit image import FILE", name)
		}
		img, err = images.Ensure(ctx, name)
	}
	if err != nil {
		fe := fault.As(err)
		out := fault.Wrap(fe.Code, err, "line %d of the Dockerfile: %s", line, fe.Message)
		out.Remedy = fe.Remedy
		return image.Image{}, out
	}
	if note := image.Note(name, img.Name, img.Versions); note != "" {
		fmt.Fprintf(b, "# line %d: note: %s; an image that others made has its registry in its name: docker.io/library/%s\n", line, note, name)
	}
	return img, nil
}

// sources returns what decides what a step copies besides the step.
func (b *fileBuild) sources(ctx context.Context, s *dockerfile.Step) (string, error) {
	switch {
	case s.Kind != dockerfile.Copy:
		return "", nil
	case s.Stage >= 0:
		st, err := b.prepare(ctx, s.Stage)
		if err != nil {
			return "", err
		}
		return st.key(), nil
	case s.From != "":
		st := b.others[s.From]
		if st == nil {
			img, err := b.base(ctx, s.Line, s.From)
			if err != nil {
				return "", err
			}
			st = &stage{work: &work{s: b.s, job: b.job(img)}, ended: true}
			b.others[s.From] = st
		}
		return st.key(), nil
	}
	h := sha256.New()
	for _, name := range s.Sources {
		if ctx.Err() != nil { // a Dockerfile may name very many
			return "", context.Cause(ctx)
		}
		all, err := b.context.Find(name)
		if errors.Is(err, fs.ErrNotExist) {
			return "", fault.New(fault.Invalid, "line %d of the Dockerfile: %q is not in the build's context", s.Line, sandbox.Clip(name, 80)).
				WithRemedy("look whether .dockerignore leaves it out, and whether the right directory is sent")
		}
		if err != nil {
			return "", fault.Wrap(fault.Of(err), err, "line %d of the Dockerfile: %s", s.Line, fault.As(err).Message)
		}
		if len(all) > 1 && s.Dest[len(s.Dest)-1] != '/' {
			return "", fault.New(fault.Invalid, "line %d of the Dockerfile: %d files fit %q, so that the destination has to be a directory, which ends in a slash", s.Line, len(all), sandbox.Clip(name, 80))
		}
		for _, f := range all {
			sum := f.Hash()
			h.Write(sum[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
