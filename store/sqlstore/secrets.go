// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// secrets is store.Secrets within one transaction.
type secrets struct{ tx *tx }

const secretColumns = "sandbox, project, name, hosts, header, format, stand_in, created_at, updated_at, sealed, vault, description"

const (
	putSecret = "INSERT INTO secrets (" + secretColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)" +
		" ON CONFLICT (sandbox, project, name) DO UPDATE SET hosts = excluded.hosts, header = excluded.header," +
		" format = excluded.format, stand_in = excluded.stand_in, updated_at = excluded.updated_at, sealed = excluded.sealed," +
		" vault = excluded.vault, description = excluded.description"
	getSecret     = "SELECT " + secretColumns + " FROM secrets WHERE sandbox = $1 AND project = $2 AND name = $3"
	listSecrets   = "SELECT " + secretColumns + " FROM secrets WHERE sandbox = $1 AND project = $2 ORDER BY name"
	allSecrets    = "SELECT " + secretColumns + " FROM secrets ORDER BY sandbox, project, name"
	attached      = "SELECT " + secretColumns + " FROM secrets WHERE project = $1 AND vault = $2 AND vault <> '' ORDER BY sandbox, name"
	deleteSecret  = "DELETE FROM secrets WHERE sandbox = $1 AND project = $2 AND name = $3"
	deleteSecrets = "DELETE FROM secrets WHERE sandbox = $1"
)

// usualHeaders stands for the usual headers where a secret names none. No header has that name.
const usualHeaders = " "

var _ store.Secrets = secrets{}

func (q secrets) Put(s *store.SealedSecret) error {
	stands := usualHeaders
	if s.StandInHeaders != nil {
		stands = strings.Join(s.StandInHeaders, " ")
	}
	// No name of a host or of a header has a space in it.
	_, err := q.tx.exec(putSecret, string(s.Sandbox), s.Project, s.Name, strings.Join(s.Hosts, " "), s.Header, s.Format, stands,
		micros(s.CreatedAt), micros(s.UpdatedAt), s.Sealed, s.Vault, s.Description)
	return err
}

func (q secrets) Get(project string, of sandbox.ID, name string) (*store.SealedSecret, error) {
	all, err := q.read(getSecret, string(of), project, name)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, noSecret(name)
	}
	return all[0], nil
}

func (q secrets) List(project string, of sandbox.ID) ([]*store.SealedSecret, error) {
	return q.read(listSecrets, string(of), project)
}

func (q secrets) Attached(project, vault string) ([]*store.SealedSecret, error) {
	return q.read(attached, project, vault)
}

func (q secrets) All() ([]*store.SealedSecret, error) { return q.read(allSecrets) }

func (q secrets) read(text string, args ...any) ([]*store.SealedSecret, error) {
	var out []*store.SealedSecret
	err := q.tx.each(text, args, func(scan func(...any) error) error {
		var s store.SealedSecret
		var hosts, stands string
		var created, updated int64
		err := scan((*string)(&s.Sandbox), &s.Project, &s.Name, &hosts, &s.Header, &s.Format, &stands, &created, &updated, &s.Sealed, &s.Vault, &s.Description)
		if hosts != "" {
			s.Hosts = strings.Split(hosts, " ")
		}
		if stands != usualHeaders {
			s.StandInHeaders = strings.Fields(stands)
		}
		s.CreatedAt, s.UpdatedAt = fromMicros(created), fromMicros(updated)
		out = append(out, &s)
		return err
	})
	return out, err
}

func (q secrets) Delete(project string, of sandbox.ID, name string) error {
	n, err := q.tx.exec(deleteSecret, string(of), project, name)
	if err == nil && n == 0 {
		err = noSecret(name)
	}
	return err
}

func noSecret(name string) *fault.Error {
	return fault.New(fault.NotFound, "there is no secret %q", sandbox.Clip(name, 80))
}
