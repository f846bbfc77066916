// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"path/filepath"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/sqlstore"
)

// undueUp finds the sandboxes that run though the records, which must not be open, say that they
// do not, each with its recorded state: such records are older than what runs.
func undueUp(ctx context.Context, k runtime.HostKind, data, namespace string) (map[sandbox.ID]string, error) {
	up, err := k.Up(place(k, data, namespace))
	if err != nil || len(up) == 0 {
		return nil, err
	}
	states, err := sqlstore.States(ctx, filepath.Join(data, dbFile), up)
	if err != nil {
		return nil, err
	}
	found := make(map[sandbox.ID]string)
	for _, id := range up {
		if why := undue(states, id); why != "" {
			found[id] = why
		}
	}
	return found, nil
}

// undueOf returns what says why a sandbox should not be up, by records that must not be open: of the
// sandboxes that are up, which the caller has looked for.
func undueOf(ctx context.Context, data string) func(sandbox.ID) string {
	return func(id sandbox.ID) string {
		states, err := sqlstore.States(ctx, filepath.Join(data, dbFile), []sandbox.ID{id})
		if err != nil || states == nil {
			return ""
		}
		return undue(states, id)
	}
}

func undue(states map[sandbox.ID]sandbox.State, id sandbox.ID) string {
	switch state, there := states[id]; {
	case !there:
		return "it runs, and the records do not know it: they are older"
	case state.Down():
		return "it runs, and is " + string(state) + " in the records: they are older"
	}
	return ""
}

// tellUndue logs the sandboxes that run though the records say that they do not. A start or a
// rollback takes down those whose record says stopped.
func tellUndue(ctx context.Context, k runtime.HostKind, data, namespace string, log *slog.Logger) {
	undue, err := undueUp(ctx, k, data, namespace)
	if err != nil {
		log.Warn("what runs cannot be compared with the records", "error", err)
	}
	const told = 16
	n := 0
	for id, what := range undue {
		if n++; n > told {
			break
		}
		log.Error("the records are not those of what runs: stop the server and run `sandpit doctor --repair`, which ends it", "sandbox", id, "what", what, "such", len(undue))
	}
}
