// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// volumes is store.Volumes within one transaction.
type volumes struct{ tx *tx }

const volumeColumns = "id, project, name, runtime, size_mb, state, created_at, created_by, expires_at"

const (
	insertVolume   = "INSERT INTO volumes (" + volumeColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING"
	getVolume      = "SELECT " + volumeColumns + " FROM volumes WHERE id = $1"
	volumeByName   = "SELECT " + volumeColumns + " FROM volumes WHERE project = $1 AND name = $2"
	allVolumes     = "SELECT " + volumeColumns + " FROM volumes ORDER BY project, name"
	projectVolumes = "SELECT " + volumeColumns + " FROM volumes WHERE project = $1 ORDER BY name"
	updateVolume   = "UPDATE volumes SET size_mb = $1, state = $2, expires_at = $3 WHERE id = $4"
	expiredVolumes = "SELECT " + volumeColumns + " FROM volumes WHERE expires_at > 0 AND expires_at <= $1 AND state = 'ready'" +
		" AND NOT EXISTS (SELECT 1 FROM sandbox_mounts WHERE volume = volumes.id) ORDER BY expires_at, id LIMIT $2"
	deleteVolume = "DELETE FROM volumes WHERE id = $1"
	volumeUsers  = "SELECT sandbox FROM sandbox_mounts WHERE volume = $1 ORDER BY sandbox"
)

var _ store.Volumes = volumes{}

func (q volumes) Insert(v *sandbox.Volume) error {
	n, err := q.tx.exec(insertVolume, string(v.ID), v.Project, v.Name, v.Runtime, int64(v.SizeMB), string(v.State), micros(v.CreatedAt), v.CreatedBy, micros(v.ExpiresAt))
	if err != nil || n == 1 {
		return err
	}
	if _, err := q.Get(v.ID); err == nil {
		return fault.New(fault.Exists, "there is a volume with the id %s", sandbox.Clip(string(v.ID), 80))
	} else if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.New(fault.Exists, "the project %s has a volume named %q", sandbox.Clip(v.Project, 80), sandbox.Clip(v.Name, 80)).
		WithRemedy("choose another name, or use that volume")
}

func (q volumes) Get(id sandbox.ID) (*sandbox.Volume, error) {
	v, err := q.one(getVolume, string(id))
	if v == nil && err == nil {
		err = noVolume(string(id))
	}
	return v, err
}

func (q volumes) ByName(project, name string) (*sandbox.Volume, error) {
	v, err := q.one(volumeByName, project, name)
	if v == nil && err == nil {
		err = noVolume(name)
	}
	return v, err
}

// one returns the row, or nil.
func (q volumes) one(text string, args ...any) (*sandbox.Volume, error) {
	var row volumeRow
	found, err := q.tx.row(text, args, row.dest()...)
	if !found || err != nil {
		return nil, err
	}
	return row.volume(), nil
}

func (q volumes) List(project string) ([]*sandbox.Volume, error) {
	text, args := allVolumes, []any(nil)
	if project != "" {
		text, args = projectVolumes, []any{project}
	}
	return q.all(text, args)
}

func (q volumes) Expired(at time.Time, limit int) ([]*sandbox.Volume, error) {
	return q.all(expiredVolumes, []any{micros(at), int64(limit)})
}

func (q volumes) all(text string, args []any) (out []*sandbox.Volume, err error) {
	var row volumeRow
	dest := row.dest()
	err = q.tx.each(text, args, func(scan func(...any) error) error {
		if err := scan(dest...); err != nil {
			return err
		}
		out = append(out, row.volume())
		return nil
	})
	return out, err
}

func (q volumes) Update(v *sandbox.Volume) error {
	n, err := q.tx.exec(updateVolume, int64(v.SizeMB), string(v.State), micros(v.ExpiresAt), string(v.ID))
	if err == nil && n == 0 {
		err = noVolume(string(v.ID))
	}
	return err
}

func (q volumes) Delete(id sandbox.ID) error {
	n, err := q.tx.exec(deleteVolume, string(id))
	if err == nil && n == 0 {
		err = noVolume(string(id))
	}
	return err
}

func (q volumes) Users(id sandbox.ID) ([]sandbox.ID, error) {
	var out []sandbox.ID
	err := q.tx.each(volumeUsers, []any{string(id)}, func(scan func(...any) error) error {
		var user string
		err := scan(&user)
		out = append(out, sandbox.ID(user))
		return err
	})
	return out, err
}

func noVolume(ref string) *fault.Error {
	return fault.New(fault.NotFound, "there is no volume %q", sandbox.Clip(ref, 80))
}

// volumeRow is one row as the data base returns it.
type volumeRow struct {
	v                      sandbox.Volume
	size, created, expires int64
}

func (r *volumeRow) dest() []any {
	v := &r.v
	return []any{
		(*string)(&v.ID), &v.Project, &v.Name, &v.Runtime, &r.size, (*string)(&v.State), &r.created, &v.CreatedBy, &r.expires,
	}
}

func (r *volumeRow) volume() *sandbox.Volume {
	v := r.v
	v.SizeMB, v.CreatedAt, v.ExpiresAt = int(r.size), fromMicros(r.created), fromMicros(r.expires)
	return &v
}
