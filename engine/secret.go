// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// secretBound bounds setting or deleting a secret; most of it is telling the sandboxes.
const secretBound = 2 * time.Minute

// secretScope is what changing secrets needs: one of a project reaches all sandboxes
// that it has.
func secretScope(ref string) access.Scope {
	if ref == "" {
		return access.Admin
	}
	return access.SandboxesWrite
}

// SetSecret sets a secret of one sandbox, or with an empty ref of the caller's project,
// whether or not it is there. Commands that begin from now on have it; connections that
// are begun from now on, where it is bound to hosts. It gives the secret without its value,
// which nothing gives.
func (e *Engine) SetSecret(ctx context.Context, c access.Caller, ref string, r secrets.Request) (sandbox.Secret, error) {
	if err := e.enterWork(c, secretScope(ref)); err != nil {
		return sandbox.Secret{}, err
	}
	defer e.group.Leave()
	s, err := r.Check()
	if err != nil {
		return sandbox.Secret{}, err
	}
	var kept sandbox.Secret
	err = e.changeSecrets(ctx, c, ref, func(tx store.Tx, of sandbox.ID) (*sandbox.Event, error) {
		s := s
		s.Project, s.Sandbox = c.Project, of
		set, ev, err := e.secrets.Set(tx, s, r.Value, core.ActorOf(c), e.now())
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
func (e *Engine) DeleteSecret(ctx context.Context, c access.Caller, ref, name string) error {
	if err := e.enter(c, secretScope(ref)); err != nil {
		return err
	}
	defer e.group.Leave()
	return e.changeSecrets(ctx, c, ref, func(tx store.Tx, of sandbox.ID) (*sandbox.Event, error) {
		return secrets.Delete(tx, c.Project, of, name, core.ActorOf(c), e.now())
	})
}

// Secrets lists the secrets of one sandbox, its own and those of its project that hold
// for it (Sandbox tells which), or with an empty ref those of the caller's project, by
// name and without their values. Looking is no use of the sandbox.
func (e *Engine) Secrets(ctx context.Context, c access.Caller, ref string) ([]sandbox.Secret, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.Leave()
	owners := []sandbox.ID{""}
	if ref != "" {
		b, err := e.find(ctx, c, ref)
		if err != nil {
			return nil, err
		}
		defer e.release(b)
		owners = []sandbox.ID{b.id, ""}
	}
	return e.secrets.List(ctx, c.Project, owners...)
}

// Secret returns the one of a name among those that Secrets lists.
func (e *Engine) Secret(ctx context.Context, c access.Caller, ref, name string) (sandbox.Secret, error) {
	all, err := e.Secrets(ctx, c, ref)
	if err != nil {
		return sandbox.Secret{}, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return sandbox.Secret{}, secrets.NotFound(name, fault.New(fault.NotFound, "none has that name"))
}

// changeSecrets makes one change, with its event, and has all that run take it.
func (e *Engine) changeSecrets(ctx context.Context, c access.Caller, ref string, change func(tx store.Tx, of sandbox.ID) (*sandbox.Event, error)) error {
	var b *entry
	var of sandbox.ID
	if ref != "" {
		var err error
		if b, err = e.find(ctx, c, ref); err != nil {
			return err
		}
		of = b.id
		e.retain(b) // for the work, which may go on when the caller is gone
		defer e.release(b)
	}
	return e.work(ctx, secretBound, func(ctx context.Context) error {
		if b != nil {
			defer e.release(b)
		}
		var ev *sandbox.Event
		err := e.core.Store.Update(ctx, func(tx store.Tx) (err error) {
			if b != nil {
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
		if b != nil {
			b.secrets.Invalidate()
		} else {
			e.secrets.InvalidateProject(c.Project)
		}
		e.bindAll(ctx, c.Project, of)
		e.core.Metrics.Happened([]*sandbox.Event{ev})
		return nil
	}, nil)
}

// bindAll binds them anew for each running sandbox that a change of secrets concerns: one, or "" for
// all of the project.
func (e *Engine) bindAll(ctx context.Context, project string, of sandbox.ID) {
	var all []*entry
	e.mu.Lock()
	for id, b := range e.entries {
		if s := b.record.Load(); s != nil && s.Project == project && (of == "" || id == of) {
			b.refs++
			all = append(all, b)
		}
	}
	e.mu.Unlock()
	var work sync.WaitGroup
	slots := make(chan struct{}, bindAtOnce)
	for _, b := range all {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			defer e.release(b)
			if l := b.standing(); l != nil {
				l.gate.Bind(ctx)
			}
		})
	}
	work.Wait()
}

// bindAtOnce is how many sandboxes bindAll works on at a time.
const bindAtOnce = 16
