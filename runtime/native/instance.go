// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/changes"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Instance is one sandbox of this driver. The driver has one value for each.
type Instance struct {
	d  *Driver
	id sandbox.ID

	// verb is held by Start, Stop, Remove, Pause and all else that changes what it is
	// doing: one at a time.
	verb sync.Mutex

	mu      sync.Mutex
	live    *live           // nil while it is down
	last    runtime.Exit    // why it is down
	leaving <-chan struct{} // closed when the overlay of the last life is gone; nil: it is
	removed bool
}

// live is what an instance has while it is up.
type live struct {
	pid    int
	pidfd  *os.File
	root   *os.File // the overlay's root; keeps it mounted until the last
	image  string   // host path of the image's root; "" when adopted
	uids   uidRange // while it lives, without a descriptor
	group  *cgroup.Group
	agent  *cgroup.Agent
	source *changes.Source // nil where changes cannot be tracked

	state host.State

	line line // to its agent

	serving *serving // nil: an earlier server waited for its agent

	stopReclaim context.CancelFunc // of its memory, while it is paused; guarded by Instance.verb

	// Guarded by Instance.mu.
	stopping bool
	evicted  bool // because the disk of all sandboxes failed
	replaced bool // another life takes its groups over, see Restore
	paused   bool // by Pause
	over     bool // process 1 is gone, and the files with it

	down chan struct{} // closed once all of this is freed
	exit runtime.Exit  // why; holds once down is closed
}

// Handle is the id alone: the rest is on disk.
func (i *Instance) Handle() runtime.Handle { return runtime.Handle{ID: i.id} }

// socketFile is that of the agent, beside those of [host.State].
const socketFile = ".sock"

func instanceFiles() []string {
	return []string{host.PausedFile, volumesFile, host.StateFile, socketFile}
}

// Dial connects to the agent.
func (i *Instance) Dial(ctx context.Context) (net.Conn, error) {
	i.mu.Lock()
	l := i.live
	i.mu.Unlock()
	if l == nil {
		return nil, fault.New(fault.State, "sandbox %s is not running", i.id)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if conn := l.line.take(); conn != nil {
		return conn, nil
	}
	conn, err := i.connect(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s does not answer", i.id)
	}
	return conn, nil
}

// Wait blocks until the instance is down.
func (i *Instance) Wait(ctx context.Context) (runtime.Exit, error) {
	i.mu.Lock()
	l, last := i.live, i.last
	i.mu.Unlock()
	if l == nil {
		return last, nil
	}
	select {
	case <-l.down:
		return l.exit, nil // whatever follows
	case <-ctx.Done():
		return runtime.Exit{}, ctx.Err()
	}
}

// Start brings it up again.
func (i *Instance) Start(ctx context.Context, spec runtime.Spec) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	i.mu.Lock()
	up, removed := i.live != nil, i.removed
	i.mu.Unlock()
	switch {
	case removed:
		return fault.New(fault.NotFound, "sandbox %s was removed", i.id)
	case up:
		return fault.New(fault.State, "sandbox %s is running already", i.id)
	}
	if err := i.settled(ctx); err != nil {
		return err
	}
	if err := i.d.sweepDown(i); err != nil { // what the last end could not free
		return err
	}
	err := i.start(ctx, spec, func() (*layer.Layer, error) {
		if err := i.limitDisk(spec.Limits); err != nil {
			return nil, err
		}
		return i.d.layers.Open(string(i.id))
	})
	if err != nil {
		return err
	}
	// A full disk had a little more than its limit, to be mounted.
	if err := i.limitDisk(spec.Limits); err != nil {
		i.d.log.Warn("a sandbox's disk may hold a little more than its limit until its next start", "sandbox", i.id, "error", err)
	}
	return nil
}

// settled waits until the overlay of the last life is unmounted: the kernel
// refuses a layer that is in use.
func (i *Instance) settled(ctx context.Context) error {
	i.mu.Lock()
	leaving := i.leaving
	i.mu.Unlock()
	if leaving == nil {
		return nil
	}
	poke(i.d.closer.hurry)
	select {
	case <-leaving:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop takes it down.
func (i *Instance) Stop(ctx context.Context, grace time.Duration) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	return i.stop(ctx, grace)
}

func (i *Instance) stop(ctx context.Context, grace time.Duration) error {
	i.mu.Lock()
	l := i.live
	if l != nil {
		l.stopping = true
	}
	i.mu.Unlock()
	if l == nil {
		return nil
	}
	if grace > 0 {
		// Best effort: an agent that does not answer is killed all the same.
		if i.Paused() { // its processes cannot end otherwise than by being killed
			if err := i.resume(ctx, l); err != nil {
				i.d.log.Warn("a paused sandbox is stopped as it stands", "sandbox", i.id, "error", err)
			}
		}
		limit, cancel := context.WithTimeout(ctx, grace+time.Second)
		if err := agent.NewClient(i.Dial).Shutdown(limit, grace); err != nil {
			i.d.log.Debug("a sandbox's processes were not asked to end", "sandbox", i.id, "error", err)
		}
		cancel()
	}
	// The end of process 1 ends every process of its namespace.
	if err := i.kill(l); err != nil {
		return fault.Wrap(fault.Internal, err, "sandbox %s cannot be killed", i.id)
	}
	i.d.checkpoint("stop.killed")
	select {
	case <-l.down:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill ends a life, and finds its user namespace again while something is in it: the next
// sandbox of that range needs one.
func (i *Instance) kill(l *live) error {
	ns := l.uids.Reopen(l.pidfd)
	i.mu.Lock()
	if l.over || l.uids.NS != nil {
		if ns != nil {
			_ = ns.Close()
		}
	} else {
		l.uids.NS = ns
	}
	i.mu.Unlock()
	return host.Kill(l.pidfd)
}

// Remove takes it down and deletes its disk.
func (i *Instance) Remove(ctx context.Context) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	defer i.d.inflight.begin()()
	if err := i.stop(ctx, 0); err != nil {
		return err
	}
	i.d.checkpoint("remove.stopped")
	if err := i.clear(); err != nil {
		return err
	}
	i.mu.Lock()
	i.removed = true
	i.mu.Unlock()
	i.d.forget(i)
	return nil
}

// clear deletes what is left of an instance that is down: its disk, and last the mark of an earlier
// version, by which the next server knows what is left.
func (i *Instance) clear() error {
	if err := i.d.sweepDown(i); err != nil {
		return err
	}
	if err := i.d.layers.Remove(string(i.id)); err != nil {
		return err
	}
	i.d.checkpoint("remove.layer")
	if err := i.remove(aheadFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Track opens a window of changes below dir.
func (i *Instance) Track(_ context.Context, dir string) (runtime.Window, error) {
	source, err := i.source()
	if err != nil {
		return nil, err
	}
	t, err := source.Track(dir)
	if err != nil {
		return nil, err
	}
	return &window{t: t}, nil
}

// watch owns an instance's end: it waits for process 1, frees what the life
// used, and only then says that it is down.
func (i *Instance) watch(l *live) {
	exit, ok := waitProcess(l.pidfd)
	if !ok {
		return // the driver was closed; the sandbox goes on
	}
	failed := l.serving.failed()

	i.mu.Lock()
	switch {
	case l.evicted:
		exit = storeFailed()
	case l.stopping:
		exit = runtime.Exit{Cause: sandbox.CauseStopped}
	case l.agent.OutOfMemory():
		exit = agentOutOfMemory()
	case failed != nil:
		exit = runtime.Exit{Cause: sandbox.CauseHost, Detail: failed.Error()}
	}
	l.over = true // and nothing is written of it any more
	replaced := l.replaced
	i.mu.Unlock()
	l.line.close()

	if l.source != nil {
		_ = l.source.Close()
	}
	if !replaced {
		i.free(l)
	}
	i.d.uids.give(l.uids)
	_ = l.pidfd.Close()

	leaving := i.d.closer.add(l.root) // not in the way of whoever waits for the end
	i.mu.Lock()
	i.live, i.last, i.leaving, l.exit = nil, exit, leaving, exit
	i.mu.Unlock()
	close(l.down)
	i.d.removeAgent(l.agent) // nobody waits for it
}

// free frees the groups and files of a life that is over.
func (i *Instance) free(l *live) {
	if err := l.group.Remove(context.Background()); err != nil {
		i.d.log.Error("the cgroups of a sandbox are left behind", "sandbox", i.id, "error", err)
	}
	for _, name := range instanceFiles() {
		if err := i.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			i.d.log.Error("a file of a sandbox is left behind", "sandbox", i.id, "file", name, "error", err)
		}
	}
}

// remove removes a file of the instance.
func (i *Instance) remove(name string) error {
	return i.d.instances.Remove(string(i.id) + name)
}

// endPatience is how long a process that cannot be looked into is given to end. The end of
// a process 1 waits until all of its namespace are reaped, also a child of a server that
// was killed, whose parent is the host's init by then: some take seconds.
const endPatience = 5 * time.Second

const hostRestarted = "the host was restarted"

// adopt finds a life that an earlier server began.
func (i *Instance) adopt() error {
	s, err := host.ReadState(i.d.instances.Root, string(i.id))
	if errors.Is(err, fs.ErrNotExist) {
		i.last = runtime.Exit{Cause: sandbox.CauseHost, Detail: "it was not running when the server started"}
		if i.d.instances.Rebooted() {
			i.last.Detail = hostRestarted
		}
		return i.d.sweepDown(i)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the state of sandbox %s cannot be read", i.id)
	}
	pidfd, err := s.Open(i.d.boot)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "whether sandbox %s still runs cannot be seen now", i.id)
	}
	if pidfd == nil {
		i.last = runtime.Exit{Cause: sandbox.CauseHost, Detail: "its process 1 ended while no server ran"}
		if i.d.evicted[i.id] {
			i.last = storeFailed()
		} else if s.Boot != i.d.boot {
			i.last.Detail = hostRestarted
		}
		if err := i.d.sweepDown(i); err != nil {
			return err
		}
		i.d.uids.give(uidRange{Range: host.Range{Base: s.UID}}) // and not before: it is in use until then
		return nil
	}
	_ = score(s.PID) // an older server may have set none
	// What a killed verb left frozen goes on first: process 1 may not have got to its root yet.
	l, thawed := &live{pid: s.PID, pidfd: pidfd, state: s}, false
	group, groupErr := i.d.cgroups.Open(string(i.id))
	var pausedErr error
	if groupErr == nil {
		l.group = group
		l.paused, thawed, pausedErr = i.findPaused(l)
	}
	root, err := openRoot(s.PID, pidfd)
	if err != nil && host.Ended(pidfd, endPatience) {
		// It was on its way out: one that was never told to begin ends when its
		// server does.
		_ = pidfd.Close()
		return i.adopt()
	}
	if errors.Is(err, fs.ErrNotExist) {
		// It has let go of its root: it is past the point where a process comes back, whoever
		// is late to reap it. Its ids stay taken as long as this server runs.
		_ = pidfd.Close()
		if err := i.remove(host.StateFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "the state of sandbox %s cannot be removed", i.id)
		}
		return i.adopt()
	}
	if err != nil {
		_ = pidfd.Close()
		return fault.Wrap(fault.Unavailable, err, "the root of sandbox %s cannot be opened", i.id)
	}
	if groupErr != nil || pausedErr != nil {
		_ = pidfd.Close()
		_ = root.Close()
		if groupErr != nil {
			return fault.Wrap(fault.Unavailable, groupErr, "the cgroups of sandbox %s are not there", i.id)
		}
		return pausedErr
	}
	l.root, l.uids, l.agent = root, i.d.uids.reserve(s.UID), i.d.cgroups.FindAgent(string(i.id), s.PID)
	i.begin(l)
	if thawed {
		i.d.watchers.Go(func() { i.continueAgent(i.d.running, l) })
	}
	return nil
}

// begin makes l the instance's life.
func (i *Instance) begin(l *live) {
	l.down = make(chan struct{})
	if i.d.changes != nil {
		source, err := i.d.changes.Add(l.root, l.lower())
		if err != nil {
			i.d.log.Warn("changes of a sandbox cannot be tracked", "sandbox", i.id, "error", err)
		}
		if l.source = source; source != nil { // one descriptor is enough
			i.d.closer.drop([]io.Closer{l.root})
			l.root = source.Root()
		}
	}
	if l.uids.NS != nil {
		i.d.closer.drop([]io.Closer{l.uids.NS})
		l.uids.NS = nil
	}
	i.mu.Lock()
	i.live, i.leaving = l, nil
	i.mu.Unlock()
	i.d.watchers.Go(func() { i.watch(l) })
	if l.serving != nil {
		i.d.watchers.Go(func() { i.hear(l) })
	}
}

// lower is where the image is on the host.
func (l *live) lower() []string {
	if l.image == "" {
		return nil
	}
	return []string{l.image}
}

// window gives a tracker of package changes the contract's form.
type window struct {
	t    *changes.Tracker
	once sync.Once
	got  sandbox.Changes
	err  error
}

// Close ends the tracker at its first call.
func (w *window) Close(ctx context.Context) (sandbox.Changes, error) {
	w.once.Do(func() {
		c, err := w.t.Stop(ctx)
		if err != nil {
			w.err = err
			return
		}
		w.got = sandbox.Changes{Files: make([]sandbox.FileChange, len(c.Files)), Total: c.Total, Complete: c.Complete}
		for n, f := range c.Files {
			w.got.Files[n] = sandbox.FileChange{Path: f.Path, Escaped: f.Escaped, Action: string(f.Action), Size: f.Size}
		}
	})
	return w.got, w.err
}
