// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Actions of events that say something of an instance.
const (
	actionDie     = "die"
	actionOOM     = "oom"
	actionPause   = "pause"
	actionUnpause = "unpause"
	actionDestroy = "destroy"
	// Podman's. It chooses events by its own words, and tells of an end by Docker's.
	actionDied   = "died"
	actionRemove = "remove"
)

// again is the first pause before an Engine is asked again for its events, and againMost the longest.
const (
	again     = 50 * time.Millisecond
	againMost = 5 * time.Second
)

func (d *Driver) listen(ctx context.Context) (*engineapi.Events, error) {
	// The stream is the driver's, and ends with it; the caller's end is that of waiting for it.
	stop := context.AfterFunc(ctx, d.stop)
	defer stop()
	return d.engine.Events(d.running, time.Time{}, []string{actionDie, actionDied, actionOOM, actionPause, actionUnpause, actionDestroy, actionRemove}, d.ours())
}

// follow is the driver's goroutine: it has every instance learn what becomes of its container, until
// Close.
func (d *Driver) follow(events *engineapi.Events) {
	for events != nil {
		broke := d.hear(events)
		d.forgetRoot()
		events = d.listenAgain(broke)
	}
}

// listenAgain asks for events until they come, and looks at what became of the containers meanwhile.
// It returns nil once the driver is closed. Where the events did not break off, those are still to come that were before.
func (d *Driver) listenAgain(broke bool) *engineapi.Events {
	if broke {
		d.begun.Add(1)
	}
	for pause := again; ; pause = min(2*pause, againMost) {
		events, err := d.listen(d.running)
		if err == nil {
			if err = d.lookAtAll(broke); err == nil {
				d.workers.Go(d.resolveAll)
				return events
			}
			events.Close()
		}
		if d.running.Err() != nil {
			return nil
		}
		d.log.Debug("the Engine's events do not come; they are asked for again", "engine", d.engine.Host().String(), "error", err)
		d.lookWithout()
		select {
		case <-d.running.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// hear takes events until they break off, or until it is time to ask anew.
func (d *Driver) hear(events *engineapi.Events) (broke bool) {
	defer events.Close()
	for {
		e, err := events.Next()
		if errors.Is(err, engineapi.ErrOver) {
			return false
		}
		if err != nil {
			if d.running.Err() == nil {
				d.log.Warn("the Engine's events broke off; they are asked for again", "engine", d.engine.Host().String(), "error", err)
			}
			return true
		}
		d.mu.Lock()
		i := d.known[sandbox.ID(e.Actor.Attributes[labelSandbox])]
		d.mu.Unlock()
		if i == nil {
			continue
		}
		if err := i.heard(d.running, e); err != nil {
			d.log.Warn("what became of a sandbox cannot be seen now; it is looked at again", "sandbox", i.id, "error", err)
			return true
		}
	}
}

// all returns the instances that are known.
func (d *Driver) all() []*Instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.known))
}

// lookWithout looks at every container that was up while its Engine does not answer. Some Engines
// take their containers along, and some do not: where nobody listens at the agent's socket any more,
// the agent ended, and the container with it.
func (d *Driver) lookWithout() {
	for _, i := range d.all() {
		if i.streams() {
			continue // whatever became of the container
		}
		limit, cancel := context.WithTimeout(d.running, agentPatience)
		c, err := i.connect(limit)
		cancel()
		if err == nil {
			_ = c.Close()
			continue
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			i.ended(runtime.Exit{Cause: sandbox.CauseHost, Detail: "its Engine ended, and the container with it"})
		}
	}
}

// lookAtAll looks at every container that was up when the events ended.
func (d *Driver) lookAtAll(broke bool) error {
	for _, i := range d.all() {
		if broke {
			i.mu.Lock()
			i.pauses = 0 // what was to be heard is past
			i.mu.Unlock()
		}
		if err := i.look(d.running); err != nil {
			return err
		}
	}
	return nil
}

// heard takes one event. It does not wait for a verb: verbs wait for events.
func (i *Instance) heard(ctx context.Context, e engineapi.Event) error {
	i.mu.Lock()
	if e.Actor.ID != i.container {
		i.mu.Unlock()
		return nil // of a stranger with our labels, or of a container that was there before
	}
	switch e.Action {
	case actionOOM:
		i.oom = time.Now()
	case actionPause:
		if i.pauses > 0 {
			i.pauses--
			break
		}
		i.frozen = !i.paused
	case actionUnpause:
		i.frozen = false
		i.thawLocked()
	}
	i.mu.Unlock()
	switch e.Action {
	case actionDie, actionDied:
		return i.look(ctx)
	case actionDestroy, actionRemove:
		i.lost(e.Actor.ID)
	}
	return nil
}

// lost notes that somebody removed the container.
func (i *Instance) lost(container string) {
	i.ended(runtime.Exit{Cause: sandbox.CauseKilled, Detail: "its container was removed"})
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.container == container {
		i.container = ""
	}
}

// look asks the Engine about the container, and notes that it is down if it is.
func (i *Instance) look(ctx context.Context) error {
	i.mu.Lock()
	up, container := i.up, i.container
	i.mu.Unlock()
	if !up || container == "" {
		return nil
	}
	c, err := i.d.engine.InspectContainer(ctx, container)
	switch {
	case fault.Is(err, fault.NotFound):
		i.lost(container)
		return nil
	case err != nil:
		return err
	case c.State.Running || c.State.Status == "created": // as it is while it is being started
		return nil
	}
	i.ended(i.exitOf(c.State))
	return nil
}

// Exit codes of a container whose process 1 was killed, and of one whose end its Engine did not see.
const (
	codeKilled = 137
	codeUnseen = 255
)

// exitOf says by the Engine's evidence why a container is down. The agent never ends by itself.
func (i *Instance) exitOf(s engineapi.State) runtime.Exit {
	i.mu.Lock()
	oom := i.oom
	i.mu.Unlock()
	evidence := fmt.Sprintf("the Engine says: %s, exit code %d", s.Status, s.ExitCode)
	switch {
	case s.OOMKilled && s.ExitCode == codeKilled && (oom.IsZero() || time.Since(oom) < oomNear):
		return runtime.Exit{Cause: sandbox.CauseOOM, Detail: evidence + ", out of memory"}
	case s.ExitCode == codeKilled:
		return runtime.Exit{Cause: sandbox.CauseKilled, Detail: evidence + ": somebody killed its process 1"}
	case s.ExitCode == codeUnseen:
		return runtime.Exit{Cause: sandbox.CauseHost, Detail: evidence + ": the Engine was restarted, or the host"}
	}
	if s.Error != "" {
		evidence += ", " + sandbox.Clip(s.Error, 200)
	}
	return runtime.Exit{Cause: sandbox.CauseHost, Detail: evidence}
}

// oomNear is how long before its end a container that was killed for lack of memory said so: one
// that lost a command to it before goes on.
const oomNear = 5 * time.Second

// adopt finds what an earlier server left of the instance. verb is held.
func (i *Instance) adopt(ctx context.Context) error {
	c, err := i.d.engine.InspectContainer(ctx, i.its())
	if err != nil {
		return err
	}
	i.mu.Lock()
	i.stream = !slices.ContainsFunc(c.Mounts, func(m engineapi.MountPoint) bool { return m.Type == "bind" && m.Destination == insideRun })
	i.drifted = c.Config.Labels[labelPolicy] != fingerprint(i.d.hostConfig())
	i.mu.Unlock()
	i.tellDrift()
	if !c.State.Running {
		exit := runtime.Exit{Cause: sandbox.CauseStopped}
		if !i.marked(stoppedFile) {
			exit = i.exitOf(c.State)
		}
		i.mu.Lock()
		i.last = exit
		i.mu.Unlock()
		return nil
	}
	if err := i.readKey(); err != nil {
		i.d.log.Error("a sandbox that runs cannot be spoken to", "sandbox", i.id, "error", err) // it can be stopped all the same
	}
	i.mu.Lock()
	i.up, i.down = true, make(chan struct{})
	i.paused = c.State.Paused && i.marked(pausedFile)
	i.mu.Unlock()
	if c.State.Paused && !i.marked(pausedFile) { // a Pause that was killed on its way, or somebody by hand
		if err := i.d.engine.ResumeContainer(ctx, i.its()); err != nil {
			return err
		}
	}
	if !i.Paused() && i.marked(pausingFile) { // a Pause or a Resume that was killed on its way
		i.continueAgent(ctx)
	}
	if err := i.finishVolumes(ctx, c); err != nil {
		return err
	}
	// What happened before it was known here was told to nobody.
	return i.look(ctx)
}
