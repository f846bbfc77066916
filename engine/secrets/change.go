// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Set sets a secret of its owner, and returns it as it is kept, with the event to append. One too
// many is fault.Exhausted. The owner is invalidated once that is committed.
func (c *Cache) Set(tx store.Tx, s sandbox.Secret, value string, who core.Actor, at time.Time) (sandbox.Secret, *sandbox.Event, error) {
	s.CreatedAt, s.UpdatedAt = at, at
	all, err := tx.Secrets().List(s.Project, s.Sandbox)
	if err != nil {
		return s, nil, err
	}
	if i := slices.IndexFunc(all, func(o *store.SealedSecret) bool { return o.Name == s.Name }); i >= 0 {
		s.CreatedAt = all[i].CreatedAt
	} else if len(all) >= sandbox.MaxSecrets {
		return s, nil, fault.New(fault.Exhausted, "there are %d secrets already, and no more than %d of a project or a sandbox can be", len(all), sandbox.MaxSecrets).
			WithRemedy("delete one that is not needed")
	}
	if err := tx.Secrets().Put(c.Seal(&s, value)); err != nil {
		return s, nil, err
	}
	return s, event(sandbox.EventSecret, &s, who, at), nil
}

// Delete deletes a secret of an owner, and returns the event to append.
func Delete(tx store.Tx, project string, of sandbox.ID, name string, who core.Actor, at time.Time) (*sandbox.Event, error) {
	s, err := tx.Secrets().Get(project, of, name)
	if err == nil {
		err = tx.Secrets().Delete(project, of, name)
	}
	if err != nil {
		return nil, NotFound(name, err)
	}
	return event(sandbox.EventSecretDeleted, &s.Secret, who, at), nil
}

// NotFound returns the error for a secret that is not there, where err says so.
func NotFound(name string, err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.Wrap(fault.NotFound, err, "there is no secret %q here", sandbox.Clip(name, 80)).
		WithRemedy("list the secrets to see which there are; a project's and a sandbox's own are apart")
}

// List returns the secrets of owners by name, without their values; of two of one name that of
// the owner that comes first.
func (c *Cache) List(ctx context.Context, project string, owners ...sandbox.ID) ([]sandbox.Secret, error) {
	var out []sandbox.Secret
	err := c.store.View(ctx, func(tx store.Tx) error {
		for _, owner := range owners {
			all, err := tx.Secrets().List(project, owner)
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

// event returns the event of a change of a secret, with its name and its hosts.
func event(t sandbox.EventType, s *sandbox.Secret, who core.Actor, at time.Time) *sandbox.Event {
	of := s.Sandbox
	what := s.Name
	switch {
	case of == sandbox.Vault:
		of = ""
		what += " of the vault"
	case s.Vault != "":
		what += ", attached from " + s.Vault + " of the vault"
	}
	ev := who.Event(t, &sandbox.Sandbox{ID: of, Project: s.Project}, at)
	switch hosts := strings.Join(s.Hosts, ", "); {
	case !s.Bound():
		what += ", a variable of commands"
	case s.Header == sandbox.NoHeader:
		what += fmt.Sprintf(", for %s where its stand-in is", hosts)
	default:
		what += fmt.Sprintf(", for %s in the header %s", hosts, s.Header)
	}
	ev.Detail = sandbox.Clip(what, sandbox.MaxEventDetail)
	return ev
}
