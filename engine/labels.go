// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/engine/secrets"
	"sandpit.dev/redact"
	"sandpit.dev/sandbox"
)

// labels take the values that commands of the sandbox were given last out of records.
func (u *Use) labels() *redact.Labels {
	if set := u.b.secrets.Last(); set != nil {
		return set.Labels
	}
	return redact.NewLabels(redact.Record)
}

// labels take the values of a sandbox's secrets out of what is told of it and not written.
// Where its secrets do not open, no text has them.
func (e *Engine) labels(ctx context.Context, project string, id sandbox.ID) *redact.Labels {
	set, err := e.secrets.Of(ctx, project, id)
	if err != nil {
		return redact.NewLabels(redact.Record)
	}
	return set.Labels
}

// openSecrets returns what is kept open of a sandbox's own secrets; nil if the sandbox is not
// in memory.
func (e *Engine) openSecrets(id sandbox.ID) *secrets.Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.entries[id]; b != nil {
		return &b.secrets
	}
	return nil
}
