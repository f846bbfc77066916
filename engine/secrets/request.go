// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"maps"
	"slices"
	"strings"

	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Request is a secret as a caller sets it; see sandbox.Secret.
type Request struct {
	Name   string
	Value  string
	Hosts  []string // empty: a variable of commands
	Header string   // empty: authorization
	Format string   // empty: "Bearer {value}" for authorization, else "{value}"

	StandInHeaders []string // nil: the usual ones

	// Vault is the name of a secret of the vault that is attached, of a new sandbox; all else but Name is the vault's to
	// say then.
	Vault string
}

// Check returns the secret as it is kept, but for whose it is, or fault.Invalid.
func (r Request) Check() (sandbox.Secret, error) {
	s, err := sandbox.Secret{Name: r.Name, Hosts: r.Hosts, Header: r.Header, Format: r.Format, StandInHeaders: r.StandInHeaders, Vault: r.Vault}.Normal()
	if err != nil {
		return s, err
	}
	return s, s.CheckSecretValue(r.Value)
}

// CheckAll checks those that a create brings, by their names, and returns them as they are
// kept but for whose they are.
func CheckAll(k *check.Fields, all map[string]Request) []Secret {
	if len(all) > sandbox.MaxSecrets {
		k.Bad("secrets", "has %d, more than %d", len(all), sandbox.MaxSecrets)
		return nil
	}
	var out []Secret
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		r.Name = name
		s, err := r.Check()
		if err == nil {
			out = append(out, Secret{Secret: s, Value: r.Value})
			continue
		}
		for _, f := range fault.As(err).Fields {
			field := "secrets"
			if f.Name != "name" {
				field += "." + name + "." + f.Name
			}
			k.Bad(field, "%s", f.Message)
		}
	}
	return out
}

// OfNew returns secrets as those of a new sandbox.
func OfNew(s *sandbox.Sandbox, all []Secret) []Secret {
	own := slices.Clone(all)
	for i := range own {
		own[i].Project, own[i].Sandbox = s.Project, s.ID
		own[i].CreatedAt, own[i].UpdatedAt = s.CreatedAt, s.CreatedAt
	}
	return own
}

// PutAll adds the secrets of a new sandbox, each with its event, which it returns.
func (c *Cache) PutAll(tx store.Tx, own []Secret, who core.Actor) ([]*sandbox.Event, error) {
	var events []*sandbox.Event
	for _, o := range own {
		if err := c.follows(tx, o); err != nil {
			return nil, err
		}
		if err := tx.Secrets().Put(c.Seal(&o.Secret, o.Value)); err != nil {
			return nil, err
		}
		events = append(events, event(sandbox.EventSecret, &o.Secret, who, o.CreatedAt))
	}
	return events, core.AppendAll(tx, events)
}

// Words names secrets at the end of what an event tells.
func Words(own []Secret) string {
	if len(own) == 0 {
		return ""
	}
	names := make([]string, len(own))
	for i, o := range own {
		names[i] = o.Name
	}
	return ", with the secrets " + strings.Join(names, ", ")
}
