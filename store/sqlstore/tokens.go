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

const (
	tokenColumns = "id, project, name, hash, scopes, created_at, last_used_at, expires_at, profile"
	tokenRead    = "SELECT " + tokenColumns + ", COALESCE((SELECT MAX(valid_until) FROM token_old_secrets WHERE token = id), 0) FROM tokens"
)

const (
	insertToken   = "INSERT INTO tokens (" + tokenColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING"
	tokenByHash   = tokenRead + " WHERE hash = $1"
	tokenByID     = tokenRead + " WHERE id = $1"
	allTokens     = tokenRead + " ORDER BY project, name"
	projectTokens = tokenRead + " WHERE project = $1 ORDER BY name"
	// An id names one token, a name perhaps several in several projects: ids first.
	findTokens  = "SELECT id, CASE WHEN id = $1 THEN 0 ELSE 1 END FROM tokens WHERE (id = $1 OR name = $1) AND ($2 = '' OR project = $2) ORDER BY 2 LIMIT 2"
	deleteToken = "DELETE FROM tokens WHERE id = $1"
	touchToken  = "UPDATE tokens SET last_used_at = $1 WHERE id = $2 AND last_used_at < $1"
	hasToken    = "SELECT id FROM tokens WHERE id = $1"

	oldSecret     = "SELECT token, valid_until FROM token_old_secrets WHERE hash = $1"
	replaceSecret = "UPDATE tokens SET hash = $1 WHERE id = $2"
	insertOld     = "INSERT INTO token_old_secrets (hash, token, valid_until) VALUES ($1, $2, $3)"
	shortenOld    = "UPDATE token_old_secrets SET valid_until = $1 WHERE token = $2 AND valid_until > $1"
	dropOld       = "DELETE FROM token_old_secrets WHERE token = $1 AND valid_until <= $2"
	countOld      = "SELECT COUNT(*) FROM token_old_secrets WHERE token = $1"
	deleteOld     = "DELETE FROM token_old_secrets WHERE token = $1"
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

func (q tokens) ByHash(hash []byte) (*access.Token, time.Time, error) {
	t, err := q.read(tokenByHash, hash)
	if t != nil || err != nil {
		return t, time.Time{}, err
	}
	var id string
	var until int64
	found, err := q.tx.row(oldSecret, []any{hash}, &id, &until)
	if err == nil && found {
		t, err = q.read(tokenByID, id)
	}
	if err == nil && t == nil {
		err = fault.New(fault.NotFound, "there is no such token")
	}
	return t, fromMicros(until), err
}

// read reads one token, nil where there is none.
func (q tokens) read(text string, arg any) (*access.Token, error) {
	var row tokenRow
	found, err := q.tx.row(text, []any{arg}, row.dest()...)
	if err != nil || !found {
		return nil, err
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
	id, err := q.find(project, idOrName)
	if err != nil {
		return err
	}
	if _, err := q.tx.exec(deleteOld, id); err != nil {
		return err
	}
	_, err = q.tx.exec(deleteToken, id)
	return err
}

func (q tokens) Rotate(project, idOrName string, hash []byte, now, until time.Time) (*access.Token, error) {
	id, err := q.find(project, idOrName)
	if err != nil {
		return nil, err
	}
	t, err := q.read(tokenByID, id)
	if err != nil || t == nil {
		return nil, err
	}
	if _, err := q.tx.exec(shortenOld, micros(until), id); err != nil {
		return nil, err
	}
	if _, err := q.tx.exec(dropOld, id, micros(now)); err != nil {
		return nil, err
	}
	if until.After(now) {
		if _, err := q.tx.exec(insertOld, t.Hash, id, micros(until)); err != nil {
			return nil, err
		}
	}
	var old int64
	if _, err := q.tx.row(countOld, []any{id}, &old); err != nil {
		return nil, err
	}
	if old > access.MaxOldSecrets {
		return nil, fault.New(fault.Conflict, "the token %q has %d old secrets that are valid still, the most there can be", sandbox.Clip(t.Name, 80), access.MaxOldSecrets).
			WithRemedy("wait until one is not, or rotate it without a grace, which ends them all")
	}
	if _, err := q.tx.exec(replaceSecret, hash, id); err != nil {
		return nil, err
	}
	return q.read(tokenByID, id)
}

// find returns the id of the token that is meant.
func (q tokens) find(project, idOrName string) (string, error) {
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
		return "", err
	case len(found) == 0:
		return "", fault.New(fault.NotFound, "there is no token %q", sandbox.Clip(idOrName, 80)).
			WithRemedy("list the tokens to see which there are")
	case len(found) == 2 && found[0].rank == 1:
		return "", fault.InvalidField("name", "several projects have a token named %q", sandbox.Clip(idOrName, 80)).
			WithRemedy("name the project too, or give the token's id")
	}
	return found[0].id, nil
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
	t                                access.Token
	scopes                           string
	created, used, expires, oldUntil int64
}

func (r *tokenRow) dest() []any {
	return []any{&r.t.ID, &r.t.Project, &r.t.Name, &r.t.Hash, &r.scopes, &r.created, &r.used, &r.expires, &r.t.Profile, &r.oldUntil}
}

func (r *tokenRow) token() *access.Token {
	t := r.t
	t.Scopes = nil
	for s := range strings.FieldsSeq(r.scopes) {
		t.Scopes = append(t.Scopes, access.Scope(s))
	}
	t.CreatedAt, t.LastUsedAt, t.ExpiresAt = fromMicros(r.created), fromMicros(r.used), fromMicros(r.expires)
	t.OldUntil = fromMicros(r.oldUntil)
	return &t
}
