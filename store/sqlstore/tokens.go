// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// tokens is store.Tokens within one transaction.
type tokens struct{ tx *tx }

const tokenColumns = "id, project, name, hash, scopes, created_at, last_used_at, expires_at, profile"

const (
	insertToken   = "INSERT INTO tokens (" + tokenColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING"
	tokenByHash   = "SELECT " + tokenColumns + " FROM tokens WHERE hash = $1"
	allTokens     = "SELECT " + tokenColumns + " FROM tokens ORDER BY project, name"
	projectTokens = "SELECT " + tokenColumns + " FROM tokens WHERE project = $1 ORDER BY name"
	// An id names one token, a name perhaps several in several projects: ids first.
	findTokens  = "SELECT id, CASE WHEN id = $1 THEN 0 ELSE 1 END FROM tokens WHERE (id = $1 OR name = $1) AND ($2 = '' OR project = $2) ORDER BY 2 LIMIT 2"
	deleteToken = "DELETE FROM tokens WHERE id = $1"
	touchToken  = "UPDATE tokens SET last_used_at = $1 WHERE id = $2 AND last_used_at < $1"
	hasToken    = "SELECT id FROM tokens WHERE id = $1"
)

var _ store.Tokens = tokens{}

func (q tokens) Insert(t *access.Token) error {
	scopes := make([]string, len(t.Scopes))
	for i, s := range t.Scopes {
		scopes[i] = string(s)
	}
	n, err := q.tx.exec(insertToken, t.ID, t.Project, t.Name, t.Hash, strings.Join(scopes, " "),
		micros(t.CreatedAt), micros(t.LastUsedAt), micros(t.ExpiresAt), t.Profile)
	if err == nil && n == 0 {
		err = fault.New(fault.Exists, "the project %s has a token named %q", t.Project, sandbox.Clip(t.Name, 80)).
			WithRemedy("choose another name, or delete that token first")
	}
	return err
}

func (q tokens) ByHash(hash []byte) (*access.Token, error) {
	var row tokenRow
	found, err := q.tx.row(tokenByHash, []any{hash}, row.dest()...)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "there is no such token")
	}
	return row.token(), nil
}

func (q tokens) List(project string) ([]*access.Token, error) {
	text, args := allTokens, []any(nil)
	if project != "" {
		text, args = projectTokens, []any{project}
	}
	var out []*access.Token
	var row tokenRow
	dest := row.dest()
	err := q.tx.each(text, args, func(scan func(...any) error) error {
		if err := scan(dest...); err != nil {
			return err
		}
		out = append(out, row.token())
		return nil
	})
	return out, err
}

func (q tokens) Delete(project, idOrName string) error {
	type match struct {
		id   string
		rank int64
	}
	var found []match
	err := q.tx.each(findTokens, []any{idOrName, project}, func(scan func(...any) error) error {
		var m match
		err := scan(&m.id, &m.rank)
		found = append(found, m)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return fault.New(fault.NotFound, "there is no token %q", sandbox.Clip(idOrName, 80)).
			WithRemedy("list the tokens to see which there are")
	case len(found) == 2 && found[0].rank == 1:
		return fault.InvalidField("name", "several projects have a token named %q", sandbox.Clip(idOrName, 80)).
			WithRemedy("name the project too, or give the token's id")
	}
	_, err = q.tx.exec(deleteToken, found[0].id)
	return err
}

func (q tokens) Touch(id string, at time.Time) error {
	n, err := q.tx.exec(touchToken, micros(at), id)
	if err != nil || n > 0 {
		return err
	}
	found, err := q.tx.row(hasToken, []any{id}, new(string))
	if err == nil && !found {
		err = fault.New(fault.NotFound, "there is no token with the id %q", sandbox.Clip(id, 80))
	}
	return err
}

// tokenRow is one row as the data base returns it.
type tokenRow struct {
	t                      access.Token
	scopes                 string
	created, used, expires int64
}

func (r *tokenRow) dest() []any {
	return []any{&r.t.ID, &r.t.Project, &r.t.Name, &r.t.Hash, &r.scopes, &r.created, &r.used, &r.expires, &r.t.Profile}
}

func (r *tokenRow) token() *access.Token {
	t := r.t
	t.Scopes = nil
	for s := range strings.FieldsSeq(r.scopes) {
		t.Scopes = append(t.Scopes, access.Scope(s))
	}
	t.CreatedAt, t.LastUsedAt, t.ExpiresAt = fromMicros(r.created), fromMicros(r.used), fromMicros(r.expires)
	return &t
}
