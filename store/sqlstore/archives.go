// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"
	"fmt"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// unownedArchives is store.UnownedArchives within one transaction.
type unownedArchives struct{ tx *tx }

const (
	putUnowned    = "INSERT INTO unowned_archives (id, sandbox) VALUES ($1, $2) ON CONFLICT DO NOTHING"
	allUnowned    = "SELECT id, sandbox FROM unowned_archives ORDER BY id"
	deleteUnowned = "DELETE FROM unowned_archives WHERE id = $1"
)

var _ store.UnownedArchives = unownedArchives{}

func (q unownedArchives) Put(a store.UnownedArchive) error {
	_, err := q.tx.exec(putUnowned, string(a.ID), string(a.Sandbox))
	return err
}

func (q unownedArchives) All() ([]store.UnownedArchive, error) {
	var out []store.UnownedArchive
	err := q.tx.each(allUnowned, nil, func(scan func(...any) error) error {
		var a store.UnownedArchive
		err := scan((*string)(&a.ID), (*string)(&a.Sandbox))
		out = append(out, a)
		return err
	})
	return out, err
}

func (q unownedArchives) Delete(id sandbox.ID) error {
	_, err := q.tx.exec(deleteUnowned, string(id))
	return err
}

// archiveColumn is the JSON of the column.
type archiveColumn struct {
	ID, Place, Digest  string
	PackedBytes, Bytes int64
	At                 int64 // µs
}

// archiveText is the column of a sandbox's archive; empty for none.
func archiveText(a sandbox.Archive) string {
	if a == (sandbox.Archive{}) {
		return ""
	}
	b, err := json.Marshal(archiveColumn{string(a.ID), a.Place, a.Digest, a.PackedBytes, a.Bytes, micros(a.At)})
	if err != nil {
		panic("sqlstore: an archive that is no JSON: " + err.Error()) // its fields are all plain
	}
	return string(b)
}

func parseArchive(text string) (sandbox.Archive, error) {
	if text == "" {
		return sandbox.Archive{}, nil
	}
	var c archiveColumn
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return sandbox.Archive{}, fmt.Errorf("the archive %q: %w", sandbox.Clip(text, 100), err)
	}
	var at time.Time
	if c.At != 0 {
		at = fromMicros(c.At)
	}
	return sandbox.Archive{ID: sandbox.ID(c.ID), Place: c.Place, Digest: c.Digest, PackedBytes: c.PackedBytes, Bytes: c.Bytes, At: at}, nil
}
