// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// bound bounds setting or deleting a secret; most of it is telling the sandboxes.
const bound = 2 * time.Minute

// Engine is what a Service needs of the engine; *engine.Engine has it.
type Engine interface {
	Enter(ctx context.Context, c access.Caller, scope access.Scope) (bound context.Context, leave func(), err error)
	Work(ctx context.Context, bound time.Duration, do func(context.Context) error) error
	Hold(ctx context.Context, c access.Caller, ref string) (id sandbox.ID, release func(), err error)
	Store() store.Store
	Now() time.Time
	Secrets() *Cache
	SecretsChanged(ctx context.Context, project string, of sandbox.ID, ev *sandbox.Event)
}

// Service sets, lists and deletes secrets for callers. It is safe for concurrent use.
type Service struct{ engine Engine }

// NewService returns the service of an engine's secrets.
func NewService(e Engine) *Service { return &Service{e} }

// scope is what changing secrets needs: one of a project reaches all sandboxes
// that it has.
func scope(ref string) access.Scope {
	if ref == "" {
		return access.Admin
	}
	return access.SandboxesWrite
}

// SetSecret sets a secret of one sandbox, or with an empty ref of the caller's project,
// whether or not it is there. Commands that begin from now on have it; connections that
// are begun from now on, where it is bound to hosts. It gives the secret without its value,
// which nothing gives.
func (s *Service) SetSecret(ctx context.Context, c access.Caller, ref string, r Request) (sandbox.Secret, error) {
	_, leave, err := s.engine.Enter(ctx, c, scope(ref))
	if err != nil {
		return sandbox.Secret{}, err
	}
	defer leave()
	if err := s.engine.Store().Room(); err != nil {
		return sandbox.Secret{}, err
	}
	checked, err := r.Check()
	if err != nil {
		return sandbox.Secret{}, err
	}
	var kept sandbox.Secret
	err = s.change(ctx, c, ref, func(tx store.Tx, of sandbox.ID) (*sandbox.Event, error) {
		own := checked
		own.Project, own.Sandbox = c.Project, of
		if err := refuseInHeaders(tx, Secret{Secret: own, Value: r.Value}); err != nil {
			return nil, err
		}
		set, ev, err := s.engine.Secrets().Set(tx, own, r.Value, core.ActorOf(c), s.engine.Now())
		kept = set
		return ev, err
	})
	if err != nil {
		return sandbox.Secret{}, err
	}
	return kept, nil
}

// DeleteSecret deletes a secret of one sandbox, or with an empty ref of the caller's
// project. Commands that run already keep what they were given.
func (s *Service) DeleteSecret(ctx context.Context, c access.Caller, ref, name string) error {
	_, leave, err := s.engine.Enter(ctx, c, scope(ref))
	if err != nil {
		return err
	}
	defer leave()
	return s.change(ctx, c, ref, func(tx store.Tx, of sandbox.ID) (*sandbox.Event, error) {
		return Delete(tx, c.Project, of, name, core.ActorOf(c), s.engine.Now())
	})
}

// Secrets lists the secrets of one sandbox, its own and those of its project that hold
// for it (Sandbox tells which), or with an empty ref those of the caller's project, by
// name and without their values. Looking is no use of the sandbox.
func (s *Service) Secrets(ctx context.Context, c access.Caller, ref string) ([]sandbox.Secret, error) {
	_, leave, err := s.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	owners := []sandbox.ID{""}
	if ref != "" {
		id, release, err := s.engine.Hold(ctx, c, ref)
		if err != nil {
			return nil, err
		}
		defer release()
		owners = []sandbox.ID{id, ""}
	}
	return s.engine.Secrets().List(ctx, c.Project, owners...)
}

// Secret returns the one of a name among those that Secrets lists.
func (s *Service) Secret(ctx context.Context, c access.Caller, ref, name string) (sandbox.Secret, error) {
	all, err := s.Secrets(ctx, c, ref)
	if err != nil {
		return sandbox.Secret{}, err
	}
	for _, one := range all {
		if one.Name == name {
			return one, nil
		}
	}
	return sandbox.Secret{}, NotFound(name, fault.New(fault.NotFound, "none has that name"))
}

// change makes one change, with its event, and has all that run take it.
func (s *Service) change(ctx context.Context, c access.Caller, ref string, change func(tx store.Tx, of sandbox.ID) (*sandbox.Event, error)) error {
	var of sandbox.ID
	release := func() {}
	if ref != "" {
		var err error
		if of, release, err = s.engine.Hold(ctx, c, ref); err != nil {
			return err
		}
	}
	return s.engine.Work(ctx, bound, func(ctx context.Context) error {
		defer release() // here, since the work may go on when the caller is gone
		var ev *sandbox.Event
		err := s.engine.Store().Update(ctx, func(tx store.Tx) (err error) {
			if of != "" {
				if _, err := tx.Sandboxes().Get(of); fault.Is(err, fault.NotFound) {
					return core.NoSandbox(ref)
				} else if err != nil {
					return err
				}
			}
			if ev, err = change(tx, of); err != nil {
				return err
			}
			return tx.Events().Append(ev)
		})
		if err != nil {
			return err
		}
		s.engine.SecretsChanged(ctx, c.Project, of, ev)
		return nil
	})
}
