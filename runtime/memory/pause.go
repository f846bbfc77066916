// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
)

var _ runtime.Pauser = (*instance)(nil)

// Pause stops the processes of the commands' sessions and shuts the agent's gate.
func (i *instance) Pause(ctx context.Context) error {
	i.m.verb.Lock()
	defer i.m.verb.Unlock()
	return i.m.pauseLocked(ctx)
}

func (i *instance) Resume(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	i.m.verb.Lock()
	defer i.m.verb.Unlock()
	return i.m.resumeLocked(ctx)
}

func (i *instance) Paused() bool {
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	return i.m.up != nil && i.m.up.paused != nil
}

func (m *machine) pauseLocked(ctx context.Context) error {
	r, err := m.running()
	if err != nil || r.paused != nil {
		return err
	}
	r.turn++
	if err = agent.NewClient(r.pipe.dialPast).Suspend(ctx, r.turn); err != nil {
		return errors.Join(err, r.proceed(ctx))
	}
	r.gate.shut()
	processes, err := gather(ctx, r)
	if err == nil {
		if err = processes.stop(ctx); err != nil {
			processes.goOn()
		}
	}
	if err != nil {
		r.gate.reopen()
		return errors.Join(err, r.proceed(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.paused = processes
	return nil
}

func (m *machine) resumeLocked(ctx context.Context) error {
	r, err := m.running()
	if err != nil || r.paused == nil {
		return err
	}
	r.paused.goOn()
	m.mu.Lock()
	r.paused = nil
	m.mu.Unlock()
	r.gate.reopen()
	return r.proceed(ctx)
}

// proceed lets the agent's clocks run on, whatever became of ctx.
func (r *running) proceed(ctx context.Context) error {
	r.turn++
	return agent.NewClient(r.pipe.dialPast).Continue(context.WithoutCancel(ctx), r.turn)
}

// running returns the agent of a machine that is up. verb is held, so that it stays so.
func (m *machine) running() (*running, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.gone:
		return nil, noInstance(m.id)
	case m.up == nil:
		return nil, errDown(m.id)
	}
	return m.up, nil
}
