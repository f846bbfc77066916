// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// SecretRequest is a secret as a caller sets it; see sandbox.Secret.
type SecretRequest struct {
	Name   string
	Value  string
	Hosts  []string // empty: a variable of commands
	Header string   // empty: authorization
	Format string   // empty: "Bearer {value}" for authorization, else "{value}"
}

// check returns the secret as it is kept, or fault.Invalid.
func (r SecretRequest) check() (sandbox.Secret, error) {
	s, err := sandbox.Secret{Name: r.Name, Hosts: r.Hosts, Header: r.Header, Format: r.Format}.Normal()
	if err != nil {
		return s, err
	}
	return s, s.CheckSecretValue(r.Value)
}

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
func (e *Engine) SetSecret(ctx context.Context, c access.Caller, ref string, r SecretRequest) (sandbox.Secret, error) {
	if err := e.enterWork(c, secretScope(ref)); err != nil {
		return sandbox.Secret{}, err
	}
	defer e.group.leave()
	s, err := r.check()
	if err != nil {
		return sandbox.Secret{}, err
	}
	var kept sandbox.Secret
	err = e.changeSecrets(ctx, c, ref, func(tx store.Tx, of sandbox.ID) (*sandbox.Event, error) {
		s, at := s, e.now()
		s.Project, s.Sandbox, s.CreatedAt, s.UpdatedAt = c.Project, of, at, at
		if err := roomForSecret(tx, &s); err != nil {
			return nil, err
		}
		if err := tx.Secrets().Put(e.secrets.Seal(&s, r.Value)); err != nil {
			return nil, err
		}
		kept = s
		return secretEvent(core.ActorOf(c), sandbox.EventSecret, &s, at), nil
	})
	if err != nil {
		return sandbox.Secret{}, err
	}
	return kept, nil
}

// roomForSecret is fault.Exhausted where one more secret is too many, and keeps the time
// of the first of its name.
func roomForSecret(tx store.Tx, s *sandbox.Secret) error {
	all, err := tx.Secrets().List(s.Project, s.Sandbox)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(o *store.SealedSecret) bool { return o.Name == s.Name })
	if at >= 0 {
		s.CreatedAt = all[at].CreatedAt
		return nil
	}
	if len(all) >= sandbox.MaxSecrets {
		return fault.New(fault.Exhausted, "there are %d secrets already, and no more than %d of a project or a sandbox can be", len(all), sandbox.MaxSecrets).
			WithRemedy("delete one that is not needed")
	}
	return nil
}

// DeleteSecret deletes a secret of one sandbox, or with an empty ref of the caller's
// project. Commands that run already keep what they were given.
func (e *Engine) DeleteSecret(ctx context.Context, c access.Caller, ref, name string) error {
	if err := e.enter(c, secretScope(ref)); err != nil {
		return err
	}
	defer e.group.leave()
	return e.changeSecrets(ctx, c, ref, func(tx store.Tx, of sandbox.ID) (*sandbox.Event, error) {
		s, err := tx.Secrets().Get(c.Project, of, name)
		if err != nil {
			return nil, noSecret(name, err)
		}
		if err := tx.Secrets().Delete(c.Project, of, name); err != nil {
			return nil, noSecret(name, err)
		}
		return secretEvent(core.ActorOf(c), sandbox.EventSecretDeleted, &s.Secret, e.now()), nil
	})
}

func noSecret(name string, err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.Wrap(fault.NotFound, err, "there is no secret %q here", sandbox.Clip(name, 80)).
		WithRemedy("list the secrets to see which there are; a project's and a sandbox's own are apart")
}

// Secrets lists the secrets of one sandbox, its own and those of its project that hold
// for it (Sandbox tells which), or with an empty ref those of the caller's project, by
// name and without their values. Looking is no use of the sandbox.
func (e *Engine) Secrets(ctx context.Context, c access.Caller, ref string) ([]sandbox.Secret, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.leave()
	owners := []sandbox.ID{""}
	if ref != "" {
		b, err := e.find(ctx, c, ref)
		if err != nil {
			return nil, err
		}
		defer e.release(b)
		owners = []sandbox.ID{b.id, ""}
	}
	var out []sandbox.Secret
	err := e.store.View(ctx, func(tx store.Tx) error {
		for _, owner := range owners {
			all, err := tx.Secrets().List(c.Project, owner)
			if err != nil {
				return err
			}
			for _, s := range all {
				if !slices.ContainsFunc(out, func(o sandbox.Secret) bool { return o.Name == s.Name }) {
					out = append(out, s.Secret)
				}
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b sandbox.Secret) int { return strings.Compare(a.Name, b.Name) })
	return out, err
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
	return sandbox.Secret{}, noSecret(name, fault.New(fault.NotFound, "none has that name"))
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
		err := e.store.Update(ctx, func(tx store.Tx) (err error) {
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
		e.metrics.Happened([]*sandbox.Event{ev})
		return nil
	}, nil)
}

// secretEvent tells of a secret by its name and its hosts.
func secretEvent(who core.Actor, t sandbox.EventType, s *sandbox.Secret, at time.Time) *sandbox.Event {
	ev := who.Event(t, &sandbox.Sandbox{ID: s.Sandbox, Project: s.Project}, at)
	ev.Detail = sandbox.Clip(describeSecret(s), sandbox.MaxEventDetail)
	return ev
}

func describeSecret(s *sandbox.Secret) string {
	if !s.Bound() {
		return s.Name + ", a variable of commands"
	}
	return fmt.Sprintf("%s, for %s in the header %s", s.Name, strings.Join(s.Hosts, ", "), s.Header)
}
