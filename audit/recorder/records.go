// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/audit"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// The records that have no events: what changes in them is told by itself.

func (t *auditedTx) Tokens() store.Tokens     { return auditedTokens{t.Tx.Tokens(), t} }
func (t *auditedTx) Projects() store.Projects { return auditedProjects{t.Tx.Projects(), t} }
func (t *auditedTx) Settings() store.Settings { return auditedSettings{t.Tx.Settings(), t} }
func (t *auditedTx) Pools() store.Pools       { return auditedPools{t.Tx.Pools(), t} }

// changed notes the row of a change that the transaction's operation makes, or the server itself.
func (t *auditedTx) changed(what sandbox.EventType, of string, format string, args ...any) {
	rec := audit.Record{At: t.r.now(), Type: what, Outcome: audit.OK, Project: of, Detail: t.r.o.Redact(sandbox.Clip(fmt.Sprintf(format, args...), sandbox.MaxEventDetail))}
	if t.from != nil {
		t.from.Describe(&rec)
	}
	if rec.Actor == "" {
		rec.Actor, rec.Via = system, system
	}
	t.rows = append(t.rows, told{rec, t.from})
}

type auditedTokens struct {
	store.Tokens
	t *auditedTx
}

func describe(t *access.Token) string {
	var scopes []string
	for _, s := range t.Scopes {
		scopes = append(scopes, string(s))
	}
	text := fmt.Sprintf("%s (%s), with %s", t.Name, t.ID, strings.Join(scopes, ", "))
	if !t.ExpiresAt.IsZero() {
		text += ", until " + t.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return text
}

func (q auditedTokens) Insert(t *access.Token) error {
	err := q.Tokens.Insert(t)
	if err == nil {
		q.t.changed(audit.TokenCreated, t.Project, "%s", describe(t))
	}
	return err
}

func (q auditedTokens) Rotate(of, idOrName string, hash []byte, now, until time.Time) (*access.Token, error) {
	t, err := q.Tokens.Rotate(of, idOrName, hash, now, until)
	if err == nil {
		rest := ""
		if until.After(now) {
			rest = ", the old secret until " + until.UTC().Format(time.RFC3339)
		}
		q.t.changed(audit.TokenRotated, t.Project, "%s%s", describe(t), rest)
	}
	return t, err
}

func (q auditedTokens) Delete(of, idOrName string) error {
	// The row says which token it was, and the record does not after.
	var gone *access.Token
	if all, err := q.List(of); err == nil {
		for _, by := range []func(*access.Token) bool{
			func(t *access.Token) bool { return t.ID == idOrName },
			func(t *access.Token) bool { return t.Name == idOrName },
		} {
			if i := slices.IndexFunc(all, by); i >= 0 && gone == nil {
				gone = all[i]
			}
		}
	}
	err := q.Tokens.Delete(of, idOrName)
	switch {
	case err != nil:
	case gone != nil:
		q.t.changed(audit.TokenDeleted, gone.Project, "%s", describe(gone))
	default:
		q.t.changed(audit.TokenDeleted, of, "%s", idOrName)
	}
	return err
}

type auditedProjects struct {
	store.Projects
	t *auditedTx
}

// quotas returns what a project may have, in words.
func quotas(p *project.Project) string {
	by := p.Quotas.ByName()
	var names []string
	for name := range by {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "without quotas"
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %v", name, by[name])
	}
	return strings.Join(names, ", ")
}

func (q auditedProjects) Insert(p *project.Project) error {
	err := q.Projects.Insert(p)
	if err == nil {
		q.t.changed(audit.ProjectCreated, p.Name, "%s: %s", p.Name, quotas(p))
	}
	return err
}

func (q auditedProjects) Update(p *project.Project) error {
	err := q.Projects.Update(p)
	if err == nil {
		q.t.changed(audit.ProjectChanged, p.Name, "%s: %s", p.Name, quotas(p))
	}
	return err
}

func (q auditedProjects) Delete(name string) error {
	err := q.Projects.Delete(name)
	if err == nil {
		q.t.changed(audit.ProjectDeleted, name, "%s", name)
	}
	return err
}

type auditedSettings struct {
	store.Settings
	t *auditedTx
}

func (q auditedSettings) Put(s store.Setting) error {
	err := q.Settings.Put(s)
	if err == nil {
		q.t.changed(audit.SettingChanged, "", "%s: %s", s.Name, s.Value)
	}
	return err
}

func (q auditedSettings) Delete(name string) error {
	err := q.Settings.Delete(name)
	if err == nil {
		q.t.changed(audit.SettingChanged, "", "%s: taken back", name)
	}
	return err
}

type auditedPools struct {
	store.Pools
	t *auditedTx
}

func (q auditedPools) Put(p store.PoolSize) error {
	err := q.Pools.Put(p)
	if err == nil {
		q.t.changed(audit.PoolChanged, "", "%s: min %d, max %d, refill %d", p.Name, p.Min, p.Max, p.Refill)
	}
	return err
}
