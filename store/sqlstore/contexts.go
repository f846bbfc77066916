// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// contexts is store.Contexts within one transaction.
type contexts struct{ tx *tx }

const contextColumns = "id, sandbox, name, language, cwd, run_user, env, is_default, created_at, used_at," +
	" process_id, starts, cells, ended, running_id, state"

const (
	insertContext = "INSERT INTO contexts (" + contextColumns + ") VALUES (" +
		"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING"
	updateContext = "UPDATE contexts SET language = $1, cwd = $2, run_user = $3, env = $4, is_default = $5, used_at = $6," +
		" process_id = $7, starts = $8, cells = $9, ended = $10, running_id = $11, state = $12 WHERE sandbox = $13 AND id = $14"
	listContexts   = "SELECT " + contextColumns + " FROM contexts WHERE sandbox = $1 ORDER BY created_at, id"
	deleteContext  = "DELETE FROM contexts WHERE sandbox = $1 AND id = $2"
	deleteContexts = "DELETE FROM contexts WHERE sandbox = $1"
)

var _ store.Contexts = contexts{}

func (q contexts) Insert(c *sandbox.Context) error {
	n, err := q.tx.exec(insertContext, c.ID, string(c.Sandbox), c.Name, c.Language, c.Cwd, c.User, labelsText(c.Env),
		truth(c.Default), micros(c.CreatedAt), micros(c.UsedAt),
		c.ProcessID, c.Starts, c.Cells, c.Ended, c.RunningID, c.State)
	if err == nil && n == 0 {
		err = fault.New(fault.Exists, "there is a context with the id %s", sandbox.Clip(c.ID, 40))
	}
	return err
}

func (q contexts) Update(c *sandbox.Context) error {
	n, err := q.tx.exec(updateContext, c.Language, c.Cwd, c.User, labelsText(c.Env), truth(c.Default), micros(c.UsedAt),
		c.ProcessID, c.Starts, c.Cells, c.Ended, c.RunningID, c.State, string(c.Sandbox), c.ID)
	if err == nil && n == 0 {
		err = noContext(c.ID)
	}
	return err
}

func (q contexts) List(id sandbox.ID) ([]*sandbox.Context, error) {
	var out []*sandbox.Context
	err := q.tx.each(listContexts, []any{string(id)}, func(scan func(...any) error) error {
		var c sandbox.Context
		var env string
		var isDefault, created, used int64
		err := scan(&c.ID, (*string)(&c.Sandbox), &c.Name, &c.Language, &c.Cwd, &c.User, &env, &isDefault, &created, &used,
			&c.ProcessID, &c.Starts, &c.Cells, &c.Ended, &c.RunningID, &c.State)
		if err != nil {
			return err
		}
		c.Default, c.CreatedAt, c.UsedAt = isDefault != 0, fromMicros(created), fromMicros(used)
		c.Env, err = parseLabels(env)
		out = append(out, &c)
		return err
	})
	return out, err
}

func (q contexts) Delete(of sandbox.ID, id string) error {
	n, err := q.tx.exec(deleteContext, string(of), id)
	if err == nil && n == 0 {
		err = noContext(id)
	}
	return err
}

func noContext(id string) *fault.Error {
	return fault.New(fault.NotFound, "there is no context %q", sandbox.Clip(id, 40))
}
