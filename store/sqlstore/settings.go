// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import "sandpit.dev/store"

// settings is store.Settings within one transaction.
type settings struct{ tx *tx }

const (
	putSetting = "INSERT INTO settings (name, value, changed_at, changed_by) VALUES ($1, $2, $3, $4)" +
		" ON CONFLICT (name) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by"
	listSettings  = "SELECT name, value, changed_at, changed_by FROM settings ORDER BY name"
	deleteSetting = "DELETE FROM settings WHERE name = $1"
)

var _ store.Settings = settings{}

func (q settings) Put(s store.Setting) error {
	_, err := q.tx.exec(putSetting, s.Name, s.Value, micros(s.ChangedAt), s.ChangedBy)
	return err
}

func (q settings) List() (all []store.Setting, err error) {
	err = q.tx.each(listSettings, nil, func(scan func(...any) error) error {
		var s store.Setting
		var at int64
		if err := scan(&s.Name, &s.Value, &at, &s.ChangedBy); err != nil {
			return err
		}
		s.ChangedAt = fromMicros(at)
		all = append(all, s)
		return nil
	})
	return all, err
}

func (q settings) Delete(name string) error {
	_, err := q.tx.exec(deleteSetting, name)
	return err
}
