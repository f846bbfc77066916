// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"maps"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// VaultRequest is a secret of the vault as a caller sets it.
type VaultRequest struct {
	Name, Value string
	Hosts       []string // at least one: no sandbox ever has the value
	Description string
}

// VaultChange is what shall change of one; nil: it stays.
type VaultChange struct {
	Value, Description *string
	Hosts              []string
}

// Vault lists the secrets of the caller's project that hold for no sandbox until they are attached to it, by name.
func (s *Service) Vault(ctx context.Context, c access.Caller) ([]sandbox.Secret, error) {
	_, leave, err := s.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.engine.Secrets().List(ctx, c.Project, sandbox.Vault)
}

// AddToVault adds a secret to the vault; a name that is taken is fault.Exists. It needs the scope that a project's own
// secrets need.
func (s *Service) AddToVault(ctx context.Context, c access.Caller, r VaultRequest) (kept sandbox.Secret, err error) {
	one := Secret{Value: r.Value, Secret: sandbox.Secret{
		Project: c.Project, Sandbox: sandbox.Vault, Name: r.Name, Hosts: r.Hosts, Header: sandbox.NoHeader, Description: r.Description,
	}}
	err = s.changeVault(ctx, c, func(tx store.Tx) ([]*sandbox.Event, error) {
		if one, err = one.check(); err != nil {
			return nil, err
		}
		if _, err := tx.Secrets().Get(c.Project, sandbox.Vault, r.Name); !fault.Is(err, fault.NotFound) {
			if err == nil {
				err = fault.New(fault.Exists, "the vault has a secret named %q", r.Name).WithRemedy("change that one, or choose another name")
			}
			return nil, err
		}
		var ev *sandbox.Event
		kept, ev, err = s.engine.Secrets().Set(tx, one.Secret, one.Value, core.ActorOf(c), s.engine.Now())
		return []*sandbox.Event{ev}, err
	})
	return kept, err
}

// check returns a secret in the form that it is kept in.
func (s Secret) check() (Secret, error) {
	kept, err := s.Normal()
	if err == nil {
		err = kept.CheckSecretValue(s.Value)
	}
	s.Secret = kept
	return s, err
}

// ChangeInVault changes a secret of the vault, and with it each that is attached from it: requests that begin from now on
// have the new value.
func (s *Service) ChangeInVault(ctx context.Context, c access.Caller, name string, ch VaultChange) (kept sandbox.Secret, err error) {
	err = s.changeVault(ctx, c, func(tx store.Tx) ([]*sandbox.Event, error) {
		one, err := s.engine.Secrets().inVault(tx, c.Project, name)
		if err != nil {
			return nil, err
		}
		if ch.Value != nil {
			one.Value = *ch.Value
		}
		if ch.Hosts != nil {
			one.Hosts = ch.Hosts
		}
		if ch.Description != nil {
			one.Description = *ch.Description
		}
		if one, err = one.check(); err != nil {
			return nil, err
		}
		who, at := core.ActorOf(c), s.engine.Now()
		var ev *sandbox.Event
		if kept, ev, err = s.engine.Secrets().Set(tx, one.Secret, one.Value, who, at); err != nil {
			return nil, err
		}
		events := []*sandbox.Event{ev}
		all, err := tx.Secrets().Attached(c.Project, name)
		if err != nil {
			return nil, err
		}
		for _, old := range all {
			ev, err := s.engine.Secrets().attach(tx, one, old.Sandbox, old.Name, who, at)
			if err != nil {
				return nil, err
			}
			events = append(events, ev)
		}
		return events, nil
	})
	return kept, err
}

// DeleteFromVault deletes a secret of the vault, and each that is attached from it.
func (s *Service) DeleteFromVault(ctx context.Context, c access.Caller, name string) error {
	return s.changeVault(ctx, c, func(tx store.Tx) ([]*sandbox.Event, error) {
		who, at := core.ActorOf(c), s.engine.Now()
		ev, err := Delete(tx, c.Project, sandbox.Vault, name, who, at)
		if err != nil {
			return nil, err
		}
		events := []*sandbox.Event{ev}
		all, err := tx.Secrets().Attached(c.Project, name)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			ev, err := Delete(tx, c.Project, one.Sandbox, one.Name, who, at)
			if err != nil {
				return nil, err
			}
			events = append(events, ev)
		}
		return events, nil
	})
}

// Attach has a sandbox have those secrets of the vault that all names, by the names that they have inside, and no other of
// the vault. Its other secrets stay; a name of one of these is fault.Exists.
func (s *Service) Attach(ctx context.Context, c access.Caller, ref string, all map[string]string) error {
	_, leave, err := s.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return err
	}
	defer leave()
	if len(all) > sandbox.MaxSecrets {
		return fault.InvalidField("secrets", "has %d, more than %d", len(all), sandbox.MaxSecrets)
	}
	of, release, err := s.engine.Hold(ctx, c, ref)
	if err != nil {
		return err
	}
	return s.work(ctx, c.Project, release, func(tx store.Tx) ([]*sandbox.Event, error) {
		if _, err := tx.Sandboxes().Get(of); err != nil {
			if fault.Is(err, fault.NotFound) {
				err = core.NoSandbox(ref)
			}
			return nil, err
		}
		return s.engine.Secrets().attachAll(tx, c.Project, of, all, core.ActorOf(c), s.engine.Now())
	})
}

// changeVault makes one change of the vault, for who may change secrets of the project.
func (s *Service) changeVault(ctx context.Context, c access.Caller, change func(store.Tx) ([]*sandbox.Event, error)) error {
	_, leave, err := s.engine.Enter(ctx, c, scope(""))
	if err != nil {
		return err
	}
	defer leave()
	if err := s.engine.Store().Room(); err != nil {
		return err
	}
	return s.work(ctx, c.Project, func() {}, change)
}

// work commits a change with its events, and has all that run take it.
func (s *Service) work(ctx context.Context, project string, release func(), change func(store.Tx) ([]*sandbox.Event, error)) error {
	return s.engine.Work(ctx, bound, func(ctx context.Context) error {
		defer release() // here, since the work may go on when the caller is gone
		var events []*sandbox.Event
		err := s.engine.Store().Update(ctx, func(tx store.Tx) (err error) {
			if events, err = change(tx); err != nil {
				return err
			}
			return core.AppendAll(tx, events)
		})
		if err != nil {
			return err
		}
		for _, ev := range events {
			of := ev.Sandbox
			if of == "" {
				of = sandbox.Vault // which no sandbox reads
			}
			s.engine.SecretsChanged(ctx, project, of, ev)
		}
		return nil
	})
}

// inVault returns a secret of a project's vault, open.
func (c *Cache) inVault(tx store.Tx, project, name string) (Secret, error) {
	s, err := tx.Secrets().Get(project, sandbox.Vault, name)
	if err != nil {
		return Secret{}, NotFound(name, err)
	}
	one, err := open(c.ring, &s.Secret, s.Sealed)
	if err == nil {
		c.log.Add(named([]Secret{one})...)
	}
	return one, err
}

// attached returns a secret of the vault as one of a sandbox.
func attached(v Secret, of sandbox.ID, name string) Secret {
	one := v
	one.Sandbox, one.Name, one.Vault, one.Description = of, name, v.Name, ""
	return one
}

// attach puts a secret of the vault among those of a sandbox, in the place of the one that has the name.
func (c *Cache) attach(tx store.Tx, v Secret, of sandbox.ID, name string, who core.Actor, at time.Time) (*sandbox.Event, error) {
	one, err := attached(v, of, name).check()
	if err != nil {
		return nil, err
	}
	if err := refuseInHeaders(tx, one); err != nil {
		return nil, err
	}
	_, ev, err := c.Set(tx, one.Secret, one.Value, who, at)
	return ev, err
}

func (c *Cache) attachAll(tx store.Tx, project string, of sandbox.ID, all map[string]string, who core.Actor, at time.Time) ([]*sandbox.Event, error) {
	have, err := tx.Secrets().List(project, of)
	if err != nil {
		return nil, err
	}
	var events []*sandbox.Event
	for _, old := range have {
		_, again := all[old.Name]
		switch {
		case old.Vault == "" && again:
			return nil, fault.New(fault.Exists, "the sandbox has a secret of its own named %s", old.Name).
				WithRemedy("delete that one first (sandpit secret rm %s --sandbox %s), or use another name", old.Name, of)
		case old.Vault == "" || again && old.Vault == all[old.Name]:
			continue
		}
		ev, err := Delete(tx, project, of, old.Name, who, at)
		if err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(have, func(o *store.SealedSecret) bool { return o.Name == name && o.Vault == all[name] }) {
			continue
		}
		v, err := c.inVault(tx, project, all[name])
		if err != nil {
			return nil, err
		}
		ev, err := c.attach(tx, v, of, name, who, at)
		if err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	return events, nil
}

// FromVault fills in those of the secrets that a create brings that are of the vault. What is not there is fault.NotFound.
func (c *Cache) FromVault(ctx context.Context, project string, all map[string]Request) (map[string]Request, error) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(r Request) bool { return r.Vault != "" }) {
		return all, nil
	}
	out := maps.Clone(all)
	err := c.store.View(ctx, func(tx store.Tx) error {
		for name, r := range all {
			if r.Vault == "" {
				continue
			}
			v, err := c.inVault(tx, project, r.Vault)
			if err != nil {
				return err
			}
			out[name] = Request{Value: v.Value, Hosts: v.Hosts, Header: v.Header, StandInHeaders: v.StandInHeaders, Vault: r.Vault}
		}
		return nil
	})
	return out, err
}

// follows returns fault.Conflict where a secret is attached from one that is another by now.
func (c *Cache) follows(tx store.Tx, s Secret) error {
	if s.Vault == "" {
		return nil
	}
	v, err := c.inVault(tx, s.Project, s.Vault)
	if err == nil && v.Value == s.Value && slices.Equal(v.Hosts, s.Hosts) {
		return nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.New(fault.Conflict, "the secret %s of the vault was changed or deleted meanwhile", s.Vault).WithRemedy("ask again")
}
