// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"sandpit.dev/agent"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Instance is one container. The driver has one value for each.
type Instance struct {
	d  *Driver
	id sandbox.ID
	// verb is held by Start, Stop, Remove, Pause and all else that changes what it is
	// doing: one at a time. Who waits for it ends with his context, however long the one before takes.
	verb *semaphore.Weighted
	// unsure is set where the Engine may have done what it was asked and did not answer, until resolve has
	// looked. verb is held for it.
	unsure bool
	// beginning is read-held while a stream begins, and held while the Engine freezes the container: an
	// Engine that does both at once does neither, for ever.
	beginning sync.RWMutex

	mu        sync.Mutex
	container string // id of it; "": there is none any more
	stream    bool   // its agent is reached by a stream of the Engine's: it has no mount for a socket
	up        bool
	began     time.Time     // when it was started here; zero: an earlier server did
	down      chan struct{} // closed when it is down; nil: it never was up here
	last      runtime.Exit  // why it is down
	stopping  bool
	paused    bool          // by Pause
	frozen    bool          // by somebody else
	thawed    chan struct{} // closed when it is neither any more, or down; nil: nobody waits for that
	pauses    int           // events of that which are still to come, and are a commit's or of Pause
	oom       time.Time
	removed   bool
	note      string         // what the last start says of that
	drifted   bool           // it was made with other rights than the driver gives now
	key       *handshake.Key // of the agent that is up
	calls     *mux.Dialer    // where it is reached by a stream: all calls, over one
}

var _ runtime.Instance = (*Instance)(nil)

// Handle is the id alone: the rest is the container's labels.
func (i *Instance) Handle() runtime.Handle { return runtime.Handle{ID: i.id} }

// its returns the id of its container; "": there is none any more.
func (i *Instance) its() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.container
}

// streams reports whether its agent is reached through the Engine.
func (i *Instance) streams() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stream
}

func (i *Instance) notRunning() error {
	return fault.New(fault.State, "sandbox %s is not running", i.id)
}

// life returns what is closed when the instance is down, or says that it is.
func (i *Instance) life() (<-chan struct{}, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.removed:
		return nil, fault.New(fault.NotFound, "sandbox %s was removed", i.id)
	case !i.up:
		return nil, i.notRunning()
	}
	return i.down, nil
}

// Wait blocks until it is down.
func (i *Instance) Wait(ctx context.Context) (runtime.Exit, error) {
	i.mu.Lock()
	up, down, last := i.up, i.down, i.last
	i.mu.Unlock()
	if !up {
		return last, nil
	}
	select {
	case <-down:
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.last, nil
	case <-ctx.Done():
		return runtime.Exit{}, ctx.Err()
	}
}

// newInstance returns an instance that is not registered yet.
func (d *Driver) newInstance(id sandbox.ID) *Instance {
	return &Instance{d: d, id: id, verb: semaphore.NewWeighted(1)}
}

// begin waits for the verb that is under way to end, or for ctx, and has verb held until end is called.
func (i *Instance) begin(ctx context.Context) (end func(), err error) {
	if err := i.verb.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { i.verb.Release(1) }, nil
}

// Start brings it up again.
func (i *Instance) Start(ctx context.Context, spec runtime.Spec) error {
	if err := i.d.check(spec); err != nil {
		return err
	}
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	switch _, err := i.life(); {
	case err == nil:
		return fault.New(fault.State, "sandbox %s is running already", i.id)
	case !fault.Is(err, fault.State):
		return err
	}
	if err := i.resolve(ctx); err != nil {
		return err
	}
	if i.its() == "" {
		return i.gone()
	}
	drifted := i.drift()
	if err := i.remount(ctx, spec); err != nil {
		return i.orGone(ctx, err)
	}
	i.mendDrift(ctx, spec, drifted)
	if err := ctx.Err(); err != nil {
		return err
	}
	work, cancel := i.d.finishing(ctx, undoTimeout)
	defer cancel()
	if err := i.resolve(work); err != nil { // of a drift that was not mended
		return err
	}
	limit := func() error { return i.d.setLimits(work, i.its(), spec.Limits) }
	err = i.makeDirectory(work)
	if err == nil && !i.d.engine.Podman() {
		err = limit()
	}
	if err == nil {
		err = i.start(work, spec)
	}
	if err == nil && i.d.engine.Podman() { // which takes no limits before
		err = limit()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	undo, done := i.d.finishing(ctx, undoTimeout)
	defer done()
	if i.isGoing(undo) { // and its event is still to come
		return errors.Join(i.gone(), i.stop(undo, 0))
	}
	return errors.Join(err, i.resolve(undo), i.stop(undo, 0))
}

func (i *Instance) gone() error {
	return fault.New(fault.NotFound, "the container of sandbox %s is gone, and its disk with it", i.id).WithRemedy("delete the sandbox and make a new one")
}

// orGone returns err, or that the container is gone where that is why.
func (i *Instance) orGone(ctx context.Context, err error) error {
	if i.isGoing(ctx) {
		return i.gone()
	}
	return err
}

// isGoing reports whether somebody removed the container, or is about to have done so.
func (i *Instance) isGoing(ctx context.Context) bool {
	container := i.its()
	if container == "" {
		return true
	}
	c, err := i.d.engine.InspectContainer(ctx, container)
	return fault.Is(err, fault.NotFound) || err == nil && (c.State.Status == "removing" || c.State.Status == "dead")
}

// start starts the container. verb is held. When it fails the instance is down, or to be stopped.
func (i *Instance) start(ctx context.Context, spec runtime.Spec) error {
	if err := i.prepare(ctx, spec); err != nil {
		return err
	}
	i.mu.Lock()
	i.began = time.Now()
	i.up, i.down, i.stopping, i.paused, i.frozen, i.pauses, i.oom = true, make(chan struct{}), false, false, false, 0, time.Time{}
	i.mu.Unlock()
	if err := i.d.engine.StartContainer(ctx, i.its()); err != nil {
		i.unsure = true
		i.ended(runtime.Exit{Cause: sandbox.CauseHost, Detail: "its container did not start"})
		if engineapi.PartChanged(err) { // since its directories were looked at
			return fault.Wrap(fault.Unavailable, err, "a directory of a volume of sandbox %s cannot be mounted now: it, or what is on the way to it, became a link or a file", i.id).
				WithRemedy("try again; if a sandbox keeps changing what is on the way to it, stop that first")
		}
		return err
	}
	return i.arrange(ctx, spec.Mounts)
}

// ended makes it down, unless it is.
func (i *Instance) ended(exit runtime.Exit) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.up {
		return
	}
	if i.stopping {
		exit = runtime.Exit{Cause: sandbox.CauseStopped}
	}
	i.up, i.last, i.paused, i.frozen = false, exit, false, false
	i.thawLocked()
	close(i.down)
	if i.calls != nil {
		_ = i.calls.Close() // nobody answers there any more
		i.calls = nil
	}
}

// Stop takes it down.
func (i *Instance) Stop(ctx context.Context, grace time.Duration) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := i.resolve(ctx); err != nil {
		return err
	}
	return i.stop(ctx, grace)
}

func (i *Instance) stop(ctx context.Context, grace time.Duration) error {
	ctx, cancel := i.d.within(ctx, grace+undoTimeout)
	defer cancel()
	i.mu.Lock()
	up, down, paused := i.up, i.down, i.paused || i.frozen
	if up {
		i.stopping = true
	}
	i.mu.Unlock()
	if !up {
		return nil
	}
	i.mark(stoppedFile)
	if grace > 0 {
		if paused { // its processes cannot end otherwise than by being killed
			if err := i.resume(ctx); err != nil {
				i.d.log.Warn("a paused sandbox is stopped as it stands", "sandbox", i.id, "error", err)
			}
		}
		limit, cancel := context.WithTimeout(ctx, grace+time.Second)
		if err := agent.NewClient(i.Dial).Shutdown(limit, grace); err != nil {
			i.d.log.Debug("a sandbox's processes were not asked to end", "sandbox", i.id, "error", err)
		}
		cancel()
	}
	err := i.d.engine.KillContainer(ctx, i.its())
	switch {
	case fault.Is(err, fault.NotFound):
		i.ended(runtime.Exit{Cause: sandbox.CauseHost, Detail: "its container is gone"})
		return nil
	case fault.Is(err, fault.Conflict): // it does not run any more, or somebody paused it and cgroups of version 1 hold the signal up
		if err := i.look(ctx); err != nil {
			return err
		}
		if _, over := i.life(); over == nil {
			return err
		}
		return nil
	case err != nil:
		i.unsure = true
		return err
	}
	// The event says it first where the Engine sends it at once. Podman may take seconds.
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		select {
		case <-down:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		if err := i.look(ctx); err != nil {
			return err
		}
	}
}

// Remove takes it down and deletes its container, and with it its disk.
func (i *Instance) Remove(ctx context.Context) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return i.remove(ctx)
}

// remove is Remove, with verb held.
func (i *Instance) remove(ctx context.Context) error {
	if i.unsure {
		if err := i.resolveName(ctx); err != nil {
			return err
		}
	}
	i.mu.Lock()
	i.stopping = i.up
	container := i.container
	i.mu.Unlock()
	if container != "" {
		if err := i.d.removeContainer(ctx, container); err != nil {
			i.unsure = true
			return err
		}
	}
	i.ended(runtime.Exit{Cause: sandbox.CauseStopped})
	if err := i.d.instances.RemoveAll(string(i.id)); err != nil {
		return fault.Wrap(fault.Internal, err, "the directory of sandbox %s cannot be removed", i.id)
	}
	i.mu.Lock()
	i.container, i.removed, i.last = "", true, runtime.Exit{Cause: sandbox.CauseStopped}
	i.mu.Unlock()
	i.d.forget(i)
	i.d.removeOld(ctx)
	return nil
}
