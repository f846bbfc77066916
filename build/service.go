// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"io"
	"log/slog"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/network/permit"
	"sandpit.dev/sandbox"
)

// Project is that of the sandboxes of builds. Its name is none that a token's project can have.
const Project = "_builds"

// Engine is what builds need of the engine; *engine.Engine has it.
type Engine interface {
	// Enter begins a verb and Go a goroutine; the engine ends after both.
	Enter(ctx context.Context, c access.Caller, scope access.Scope) (bound context.Context, leave func(), err error)
	Go(fn func(context.Context))
	WaitReady(ctx context.Context) error
	Defaults() engine.Defaults
	Most() sandbox.Limits
	Now() time.Time

	Create(context.Context, access.Caller, engine.CreateRequest) (s *sandbox.Sandbox, created bool, err error)
	Start(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Stop(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	KillAll(ctx context.Context, c access.Caller, ref string) error
	Delete(ctx context.Context, c access.Caller, ref string) error
	List(ctx context.Context, c access.Caller, r engine.SandboxesRequest) (engine.Page, error)
	Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error)
	Connect(ctx context.Context, c access.Caller, scope access.Scope, ref, what string) (client *agent.Client, release func(), err error)
	CreateSnapshot(ctx context.Context, c access.Caller, ref string, r engine.SnapshotRequest) (*sandbox.Snapshot, error)
	Snapshots(ctx context.Context, c access.Caller, q snapshot.Query) (snapshot.Page, error)
	DeleteSnapshot(ctx context.Context, c access.Caller, of, snap string) error
	ExportSnapshot(ctx context.Context, c access.Caller, of, snap string, w io.Writer) error
	Presets(ctx context.Context, c access.Caller, image string) (all []permit.Preset, built bool, err error)
}

// Host is what a build takes over of the host.
type Host struct {
	Variables   map[string]string // by which package tools know where to fetch from; a value may have a password in it
	Authorities []byte            // certificates in PEM, which the host trusts; empty: the image's own are enough
}

// Options of a Service. The zero value works.
type Options struct {
	// Host is asked at each build; nil: nothing is taken over.
	Host   func() (Host, error)
	Logger *slog.Logger // nil: discard
	// Images are those that Dockerfiles begin with and become; nil: no Dockerfile is built.
	Images Images
	// Checkpoint is called at points of a build, with a name such as "build.step". Nil: not called.
	Checkpoint func(name string)
}

const (
	atOnce = 2 // builds; more wait

	mostContexts = 8 // builds of Dockerfiles that go on, wait, or have their context read; more are refused

	// keepSteps is how long the snapshots of steps are used, and mostSteps how many are kept.
	keepSteps = 24 * time.Hour
	mostSteps = 120

	// lifetime deletes the sandbox of a build that nothing else deletes. It is longer than an image's
	// build may take.
	lifetime = 2 * time.Hour

	tidyBound = time.Minute // for deleting what a build leaves
)

// What the sandbox of a build may take, as far as the server's bounds allow it.
const (
	buildMemoryMB = 4096
	buildDiskMB   = 16384
	buildPids     = 1024
)

// Service builds images. Its methods are safe for concurrent use.
type Service struct {
	engine   Engine
	o        Options
	slots    chan struct{}
	contexts chan struct{}
	swept    chan struct{} // closed when what an earlier server left is gone
}

var _ image.Builder = (*Service)(nil)

// New makes a service and starts nothing.
func New(e Engine, o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Host == nil {
		o.Host = func() (Host, error) { return Host{}, nil }
	}
	if o.Checkpoint == nil {
		o.Checkpoint = func(string) {}
	}
	return &Service{engine: e, o: o, slots: make(chan struct{}, atOnce), contexts: make(chan struct{}, mostContexts), swept: make(chan struct{})}
}

// caller is who builds.
func caller() access.Caller {
	return access.Caller{Project: Project, Actor: "the server's builds", Via: "system", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
}

// Resume is for the engine's Run. It has what is left of an earlier server's builds deleted, in the
// background; builds wait for that.
func (s *Service) Resume(context.Context) error {
	s.engine.Go(func(ctx context.Context) {
		defer close(s.swept)
		if err := s.engine.WaitReady(ctx); err != nil {
			return
		}
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Error("what builds of an earlier server left cannot be deleted; a clock deletes it", "error", err)
		}
	})
	return nil
}

// sweep deletes every sandbox of builds, and what is kept of steps for too long.
func (s *Service) sweep(ctx context.Context) error {
	for {
		page, err := s.engine.List(ctx, caller(), engine.SandboxesRequest{Limit: engine.MaxPage})
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			return s.prune(ctx)
		}
		for _, one := range page.Items {
			s.o.Logger.Info("deleting the sandbox of a build that was broken off", "sandbox", one.ID)
			if err := s.engine.Delete(ctx, caller(), string(one.ID)); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
	}
}

// steps returns the snapshots of steps, the newest first.
func (s *Service) steps(ctx context.Context) ([]*sandbox.Snapshot, error) {
	var all []*sandbox.Snapshot
	q := snapshot.Query{Limit: engine.MaxPage}
	for {
		page, err := s.engine.Snapshots(ctx, caller(), q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" {
			return all, nil
		}
	}
}

// prune deletes snapshots of steps that are too old or too many.
func (s *Service) prune(ctx context.Context) error {
	all, err := s.steps(ctx)
	if err != nil {
		return err
	}
	for i, snap := range all {
		if i < mostSteps && s.engine.Now().Sub(snap.CreatedAt) < keepSteps {
			continue
		}
		if err := s.engine.DeleteSnapshot(ctx, caller(), "", string(snap.ID)); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// limits are those of a build's sandbox.
func (s *Service) limits() sandbox.Limits {
	most := s.engine.Most()
	return sandbox.Limits{
		CPU: most.CPU, MemoryMB: min(most.MemoryMB, buildMemoryMB), DiskMB: min(most.DiskMB, buildDiskMB), Pids: min(most.Pids, buildPids),
	}
}
