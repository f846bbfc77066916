// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"

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

// SecretsChanged has all that runs take a change of secrets that was committed with its event: of a sandbox, or with an
// empty id of a project.
func (e *Engine) SecretsChanged(ctx context.Context, project string, of sandbox.ID, ev *sandbox.Event) {
	if of == "" {
		e.secrets.InvalidateProject(project)
	} else if own := e.openSecrets(of); own != nil {
		own.Invalidate()
	}
	e.bindAll(ctx, project, of)
	e.core.Metrics.Happened([]*sandbox.Event{ev})
}

// bindAll binds them anew for each running sandbox that a change of secrets concerns: one, or "" for
// all of the project.
func (e *Engine) bindAll(ctx context.Context, project string, of sandbox.ID) {
	var all []*entry
	e.mu.Lock()
	for id, b := range e.entries {
		if s := b.record.Load(); s != nil && s.Project == project && (of == "" || id == of) {
			b.refs++
			all = append(all, b)
		}
	}
	e.mu.Unlock()
	var work sync.WaitGroup
	slots := make(chan struct{}, bindAtOnce)
	for _, b := range all {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			defer e.release(b)
			if l := b.standing(); l != nil {
				l.gate.Bind(ctx)
			}
		})
	}
	work.Wait()
}

// bindAtOnce is how many sandboxes bindAll works on at a time.
const bindAtOnce = 16
