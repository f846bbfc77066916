// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/docker/engineapi"
)

// resolve learns what the Engine did of what it was asked and did not answer: which container the sandbox
// is, and whether it runs. Where all was answered it does nothing. verb is held.
func (i *Instance) resolve(ctx context.Context) error {
	if !i.unsure {
		return nil
	}
	if err := i.resolveName(ctx); err != nil {
		return err
	}
	if err := i.resolveState(ctx); err != nil {
		return err
	}
	i.unsure = false
	return nil
}

// resolveName finds out which container it is, by their names, and removes the others.
func (i *Instance) resolveName(ctx context.Context) error {
	its := labelSandbox + "=" + string(i.id)
	if err := i.d.sweepReplaced(ctx, its); err != nil {
		return err
	}
	list, err := i.d.find(ctx, its)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.container = ""
	if len(list) > 0 {
		i.container = list[0].container
	}
	return nil
}

// resolveState has the container be in the state that the instance says, or notes that it is down.
func (i *Instance) resolveState(ctx context.Context) error {
	container := i.its()
	if container == "" {
		return nil
	}
	c, err := i.d.engine.InspectContainer(ctx, container)
	if fault.Is(err, fault.NotFound) {
		i.lost(container)
		return nil
	}
	if err != nil {
		return err
	}
	i.mu.Lock()
	up, paused := i.up, i.paused
	i.mu.Unlock()
	switch {
	case up && !c.State.Running:
		return i.look(ctx)
	case up && c.State.Paused != paused: // by a Pause or a Resume that failed
		return i.resume(ctx)
	case !up && c.State.Running: // by a Start that failed
		return i.kill(ctx, container)
	}
	i.mu.Lock()
	i.stopping = false // a Stop that failed was not heard
	i.mu.Unlock()
	return nil
}

// kill kills a container of which no event is awaited, and returns when it does not run any more.
func (i *Instance) kill(ctx context.Context, container string) error {
	ctx, cancel := i.d.within(ctx, undoTimeout)
	defer cancel()
	if err := i.d.engine.KillContainer(ctx, container); err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
		return err
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := i.d.engine.InspectContainer(ctx, container)
		if fault.Is(err, fault.NotFound) || err == nil && !c.State.Running {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// removeContainer removes a container, up or down. One that is gone is no error, and one that the Engine is removing
// already, since it was told before by a call that broke off, is waited for.
func (d *Driver) removeContainer(ctx context.Context, container string) error {
	err := d.engine.RemoveContainer(ctx, container)
	if !fault.Is(err, fault.Conflict) && !engineapi.CleansUp(err) {
		return unlessGone(err)
	}
	ctx, cancel := d.within(ctx, undoTimeout)
	defer cancel()
	for pause := 50 * time.Millisecond; engineapi.CleansUp(err) && pause < 4*time.Second; pause *= 2 {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		err = d.engine.RemoveContainer(ctx, container)
	}
	if !fault.Is(err, fault.Conflict) {
		return unlessGone(err)
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, seen := d.engine.InspectContainer(ctx, container)
		if seen != nil {
			return unlessGone(seen)
		}
		if c.State.Status != "removing" {
			return unlessGone(d.engine.RemoveContainer(ctx, container))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// unlessGone returns err, or nil where it says that there is no such thing.
func unlessGone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// resolveAll resolves what was asked of an Engine that was away. An instance of which a verb is under
// way is left to that, or to the next one.
func (d *Driver) resolveAll() {
	for _, i := range d.all() {
		if !i.verb.TryAcquire(1) {
			continue
		}
		err := i.resolve(d.running)
		i.verb.Release(1)
		if err != nil && d.running.Err() == nil {
			d.log.Warn("what the Engine did of a call that broke off cannot be seen yet", "sandbox", i.id, "error", err)
		}
	}
}

// stillFrozen asks the Engine whether somebody froze the container: an event of a Pause may come when
// that is over.
func (i *Instance) stillFrozen(ctx context.Context) bool {
	limit, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	c, err := i.d.engine.InspectContainer(limit, i.its())
	if err != nil || c.State.Paused {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.frozen = false
	i.thawLocked()
	return false
}
