// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// sessions is store.Sessions within one transaction.
type sessions struct{ tx *tx }

const sessionColumns = "id, hash, code, token_hash, token, project, actor, address, agent, created_at, last_used_at, expires_at"

const (
	insertSession   = "INSERT INTO sessions (" + sessionColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING"
	sessionByHash   = "SELECT " + sessionColumns + " FROM sessions WHERE hash = $1"
	projectSessions = "SELECT " + sessionColumns + " FROM sessions WHERE project = $1 AND code = 0 ORDER BY created_at, id"
	allSessions     = "SELECT " + sessionColumns + " FROM sessions WHERE code = 0 ORDER BY created_at, id"
	hasSession      = "SELECT id FROM sessions WHERE id = $1"
	touchSession    = "UPDATE sessions SET last_used_at = $1 WHERE id = $2 AND last_used_at < $1"
	deleteSession   = "DELETE FROM sessions WHERE id = $1"
	expireSessions  = "DELETE FROM sessions WHERE expires_at <= $1 OR code = 0 AND last_used_at < $2"
)

var _ store.Sessions = sessions{}

func (q sessions) Insert(s *access.Session) error {
	n, err := q.tx.exec(insertSession, s.ID, s.Hash, truth(s.Code), s.TokenHash, s.TokenID, s.Project, s.Actor, s.Address, s.Agent,
		micros(s.CreatedAt), micros(s.LastUsedAt), micros(s.ExpiresAt))
	if err == nil && n == 0 {
		err = fault.New(fault.Exists, "there is a session with the id %s", sandbox.Clip(s.ID, 40))
	}
	return err
}

func (q sessions) ByHash(hash []byte) (*access.Session, error) {
	all, err := q.all(sessionByHash, hash)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "there is no such session")
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (q sessions) List(project string) ([]*access.Session, error) {
	if project == "" {
		return q.all(allSessions)
	}
	return q.all(projectSessions, project)
}

func (q sessions) all(text string, args ...any) (out []*access.Session, err error) {
	err = q.tx.each(text, args, func(scan func(...any) error) error {
		var s access.Session
		var code, created, used, expires int64
		if err := scan(&s.ID, &s.Hash, &code, &s.TokenHash, &s.TokenID, &s.Project, &s.Actor, &s.Address, &s.Agent, &created, &used, &expires); err != nil {
			return err
		}
		s.Code, s.CreatedAt, s.LastUsedAt, s.ExpiresAt = code != 0, fromMicros(created), fromMicros(used), fromMicros(expires)
		out = append(out, &s)
		return nil
	})
	return out, err
}

func (q sessions) Touch(id string, at time.Time) error {
	n, err := q.tx.exec(touchSession, micros(at), id)
	if err != nil || n > 0 {
		return err
	}
	found, err := q.tx.row(hasSession, []any{id}, new(string))
	if err == nil && !found {
		err = noSession(id)
	}
	return err
}

func (q sessions) Delete(id string) error {
	n, err := q.tx.exec(deleteSession, id)
	if err == nil && n == 0 {
		err = noSession(id)
	}
	return err
}

func (q sessions) Expire(now, idle time.Time) error {
	_, err := q.tx.exec(expireSessions, micros(now), micros(idle))
	return err
}

func noSession(id string) error {
	return fault.New(fault.NotFound, "there is no session with the id %q", sandbox.Clip(id, 40)).WithRemedy("list the sessions to see which there are")
}
