// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// previewLinks is store.PreviewLinks within one transaction.
type previewLinks struct{ tx *tx }

const previewLinkColumns = "id, sandbox, project, port, created_at, expires_at, created_by"

const (
	insertPreviewLink  = "INSERT INTO preview_links (" + previewLinkColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
	getPreviewLink     = "SELECT " + previewLinkColumns + " FROM preview_links WHERE id = $1"
	listPreviewLinks   = "SELECT " + previewLinkColumns + " FROM preview_links WHERE sandbox = $1 ORDER BY created_at, id"
	deletePreviewLink  = "DELETE FROM preview_links WHERE sandbox = $1 AND id = $2"
	expirePreviewLinks = "DELETE FROM preview_links WHERE sandbox = $1 AND expires_at <> 0 AND expires_at <= $2"
	movePreviewLinks   = "UPDATE preview_links SET sandbox = $2 WHERE sandbox = $1"
	dropPreviewLinks   = "DELETE FROM preview_links WHERE sandbox = $1"
)

var _ store.PreviewLinks = previewLinks{}

func (q previewLinks) Insert(l *store.PreviewLink) error {
	n, err := q.tx.exec(insertPreviewLink, l.ID, string(l.Sandbox), l.Project, int64(l.Port), micros(l.CreatedAt), micros(l.ExpiresAt), l.CreatedBy)
	if err == nil && n == 0 {
		err = fault.New(fault.Exists, "there is a link with the id %s", sandbox.Clip(l.ID, 40))
	}
	return err
}

func (q previewLinks) Get(id string) (*store.PreviewLink, error) {
	all, err := q.all(getPreviewLink, id)
	if err == nil && len(all) == 0 {
		err = noPreviewLink(id)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (q previewLinks) List(of sandbox.ID) ([]*store.PreviewLink, error) {
	return q.all(listPreviewLinks, string(of))
}

func (q previewLinks) all(text string, arg any) (out []*store.PreviewLink, err error) {
	err = q.tx.each(text, []any{arg}, func(scan func(...any) error) error {
		var l store.PreviewLink
		var port, created, expires int64
		if err := scan(&l.ID, (*string)(&l.Sandbox), &l.Project, &port, &created, &expires, &l.CreatedBy); err != nil {
			return err
		}
		l.Port, l.CreatedAt, l.ExpiresAt = int(port), fromMicros(created), fromMicros(expires)
		out = append(out, &l)
		return nil
	})
	return out, err
}

func (q previewLinks) Delete(of sandbox.ID, id string) error {
	n, err := q.tx.exec(deletePreviewLink, string(of), id)
	if err == nil && n == 0 {
		err = noPreviewLink(id)
	}
	return err
}

func (q previewLinks) Move(from, to sandbox.ID) error {
	_, err := q.tx.exec(movePreviewLinks, string(from), string(to))
	return err
}

func (q previewLinks) Expire(of sandbox.ID, now time.Time) error {
	_, err := q.tx.exec(expirePreviewLinks, string(of), micros(now))
	return err
}

func noPreviewLink(id string) error {
	return fault.New(fault.NotFound, "there is no link %q to a port of the sandbox", sandbox.Clip(id, 40)).WithRemedy("list the sandbox's links to see which there are")
}
