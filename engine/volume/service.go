// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Engine is what a Service needs of the engine; *engine.Engine has it.
type Engine interface {
	Enter(ctx context.Context, c access.Caller, scope access.Scope) (bound context.Context, leave func(), err error)
	Work(ctx context.Context, bound time.Duration, do func(context.Context) error) error
	CheckRecord(ctx context.Context, project string, id sandbox.ID, fields map[string][]string) error
	Store() store.Store
	Volumes() *Keeper
}

// Service makes, lists and deletes volumes for callers. It is safe for concurrent use.
type Service struct{ engine Engine }

// NewService returns the service of an engine's volumes.
func NewService(e Engine) *Service { return &Service{e} }

// CreateVolume makes an empty volume. A name that the project has is fault.Exists.
func (s *Service) CreateVolume(ctx context.Context, c access.Caller, r Request) (Info, error) {
	_, leave, err := s.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return Info{}, err
	}
	defer leave()
	if err := s.engine.Store().Room(); err != nil {
		return Info{}, err
	}
	if err := s.engine.Volumes().Check(r); err != nil {
		return Info{}, err
	}
	if err := s.engine.CheckRecord(ctx, c.Project, "", map[string][]string{"name": {r.Name}}); err != nil {
		return Info{}, err
	}
	var got Info
	err = s.engine.Work(ctx, Bound, func(ctx context.Context) (err error) {
		got, err = s.engine.Volumes().Create(ctx, c.Project, r, core.ActorOf(c))
		return err
	})
	if err != nil {
		return Info{}, err // got may be written to still
	}
	return got, nil
}

// Volumes returns the project's volumes, by name.
func (s *Service) Volumes(ctx context.Context, c access.Caller) ([]Info, error) {
	_, leave, err := s.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.engine.Volumes().List(ctx, c.Project)
}

// Volume returns one, by its name or its id.
func (s *Service) Volume(ctx context.Context, c access.Caller, ref string) (Info, error) {
	_, leave, err := s.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return Info{}, err
	}
	defer leave()
	return s.engine.Volumes().Get(ctx, c.Project, ref)
}

// UpdateVolume changes one.
func (s *Service) UpdateVolume(ctx context.Context, c access.Caller, ref string, p Patch) (Info, error) {
	_, leave, err := s.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return Info{}, err
	}
	defer leave()
	return s.engine.Volumes().Update(ctx, c.Project, ref, p, core.ActorOf(c))
}

// DeleteVolume deletes one, with all that is in it. While any sandbox mounts it, up
// or down, it is fault.Conflict and names them.
func (s *Service) DeleteVolume(ctx context.Context, c access.Caller, ref string) error {
	_, leave, err := s.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return err
	}
	defer leave()
	return s.engine.Work(ctx, Bound, func(ctx context.Context) error {
		return s.engine.Volumes().Delete(ctx, c.Project, ref, core.ActorOf(c))
	})
}
