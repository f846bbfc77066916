// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"time"

	"sandpit.dev/sandbox"
)

// due is the condition of [store.SandboxQuery.DueBefore]. Columns that are lengths
// of time hold ns, those that are dates hold µs.
func due(w *where, t time.Time) {
	at := w.arg(micros(t))
	w.and("(expires_at > 0 AND expires_at <= " + at +
		" OR ttl > 0 AND (last_activity + ttl / 1000 <= " + at + " OR last_activity > " + at + ")" +
		" OR state IN ('stopped', 'archived', 'paused') AND retention > 0 AND stopped_at + retention / 1000 <= " + at +
		" OR state = 'stopped' AND archive_after > 0 AND stopped_at + archive_after / 1000 <= " + at +
		" OR state = 'stopped' AND auto_delete <> 0)")
}

const sandboxRuntimes = "SELECT id, runtime FROM sandboxes"

func (q sandboxes) Runtimes() (map[sandbox.ID]string, error) {
	runtimes := make(map[sandbox.ID]string)
	names := make(map[string]string) // one copy of each
	var id, name string
	err := q.tx.each(sandboxRuntimes, nil, func(scan func(...any) error) error {
		if err := scan(&id, &name); err != nil {
			return err
		}
		if _, ok := names[name]; !ok {
			names[name] = name
		}
		runtimes[sandbox.ID(id)] = names[name]
		return nil
	})
	return runtimes, err
}
