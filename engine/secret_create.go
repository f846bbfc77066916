// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"

	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// checkSecrets checks those that a create brings, by their names, and gives them as they are
// kept but for whose they are.
func checkSecrets(k *check.Fields, all map[string]SecretRequest) []secrets.Secret {
	if len(all) > sandbox.MaxSecrets {
		k.Bad("secrets", "has %d, more than %d", len(all), sandbox.MaxSecrets)
		return nil
	}
	var out []secrets.Secret
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		r.Name = name
		s, err := r.check()
		if err == nil {
			out = append(out, secrets.Secret{Secret: s, Value: r.Value})
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

// ownSecrets makes secrets those of a new sandbox.
func ownSecrets(all []secrets.Secret, s *sandbox.Sandbox) []secrets.Secret {
	own := slices.Clone(all)
	for i := range own {
		own[i].Project, own[i].Sandbox = s.Project, s.ID
		own[i].CreatedAt, own[i].UpdatedAt = s.CreatedAt, s.CreatedAt
	}
	return own
}

// putSecrets adds the secrets of a new sandbox, each with its event, which it gives.
func (e *Engine) putSecrets(tx store.Tx, own []secrets.Secret, who core.Actor) ([]*sandbox.Event, error) {
	var events []*sandbox.Event
	for _, o := range own {
		if err := tx.Secrets().Put(e.secrets.Seal(&o.Secret, o.Value)); err != nil {
			return nil, err
		}
		ev := secretEvent(who, sandbox.EventSecret, &o.Secret, o.CreatedAt)
		if err := tx.Events().Append(ev); err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	return events, nil
}

// withSecrets names secrets at the end of what an event tells.
func withSecrets(own []secrets.Secret) string {
	if len(own) == 0 {
		return ""
	}
	names := make([]string, len(own))
	for i, o := range own {
		names[i] = o.Name
	}
	return ", with the secrets " + strings.Join(names, ", ")
}
