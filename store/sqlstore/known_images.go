// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import "sandpit.dev/store"

// knownImages is store.KnownImages within one transaction.
type knownImages struct{ tx *tx }

const (
	listKnownImages  = "SELECT name, digest, object FROM known_images ORDER BY name"
	putKnownImage    = "INSERT INTO known_images (name, digest, object) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, object = excluded.object"
	deleteKnownImage = "DELETE FROM known_images WHERE name = $1"
)

var _ store.KnownImages = knownImages{}

func (q knownImages) List() (out []*store.KnownImage, err error) {
	err = q.tx.each(listKnownImages, nil, func(scan func(...any) error) error {
		i := new(store.KnownImage)
		err := scan(&i.Name, &i.Digest, &i.Object)
		out = append(out, i)
		return err
	})
	return out, err
}

func (q knownImages) Put(i *store.KnownImage) error {
	_, err := q.tx.exec(putKnownImage, i.Name, i.Digest, i.Object)
	return err
}

func (q knownImages) Delete(name string) error {
	_, err := q.tx.exec(deleteKnownImage, name)
	return err
}
