// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"sandpit.dev/agent/server/kept"
	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/changes"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/layer"
	"sandpit.dev/linux/mount"
	"sandpit.dev/linux/seccomp"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native/furnish"
	"sandpit.dev/sandbox"
)

// Options of Open.
type Options struct {
	// Dir is the driver's part of the data directory; it has one owner at a
	// time, which the server's lock on the data directory sees to. Required.
	Dir string
	// Namespace names the driver's part of the host's cgroups and its files in memory: 12
	// characters of a-z and 0-9, of this directory alone and the same for ever. "": it is made
	// of the path of Dir; see [Kind.NamespaceOf].
	Namespace string
	// Store says whose the store of layers has to be.
	Store layer.Identity
	// Agent is the agent's program, a static binary. Required.
	Agent []byte
	// Layers forces a kind of store for the writable layers; "" takes the best.
	Layers layer.Kind
	// Yard makes it work as on kernels before Linux 6.15, on which it does so anyway: for tests.
	Yard bool
	// Spawn is how children of the server are made: for tests. Fastest, as it is unless set, is
	// for all others.
	Spawn spawn.Method
	// Logger gets what goes wrong behind a caller's back; nil drops it.
	Logger *slog.Logger
	// Checkpoint is called at each point of a verb at which the host was just changed:
	// for tests that end the server there. It may be called from several goroutines.
	Checkpoint func(name string)
}

// Driver is the native runtime. See [runtime.Driver].
type Driver struct {
	log        *slog.Logger
	boot       string // the host's boot id
	checkpoint func(string)

	instances  *host.Instances // two files for each instance that is up
	layers     *layer.Store
	cgroups    *cgroup.Driver
	changes    *changes.Group // nil where the host cannot
	changesErr error          // why not
	uids       *ranges
	inflight   inflight
	seeds      seeds
	queue      queue
	closer     *closer
	spawning   spawn.Method
	starter    *spawn.Starter
	mounts     *os.File         // mount namespace that sandboxes begin with a copy of
	yard       *mount.Namespace // nil from Linux 6.15 on
	script     *furnish.Script

	agent *os.File // the program, on a read-only mount of its own
	reap  bool     // agents reap by themselves, as they have to before Linux 6.15
	null  *os.File

	userFilter, rootFilter []byte

	watchers sync.WaitGroup     // of instances, and of what else runs until Close
	running  context.Context    // of what else runs
	end      context.CancelFunc // of the same
	reclaims chan struct{}      // held by the one that takes memory back

	patience time.Duration // of the wait for an agent's word

	volumes sync.RWMutex // for reading by who is about to mount one

	evicted map[sandbox.ID]bool // by Open, see evictFound

	mu     sync.Mutex
	known  map[sandbox.ID]*Instance
	closed bool
}

// Open prepares the host: the store of the layers, parents of the cgroups. It finds no instance and starts none.
func Open(ctx context.Context, opts Options) (_ *Driver, err error) {
	if err := checkHost(); err != nil {
		return nil, err
	}
	d := &Driver{log: opts.Logger, checkpoint: opts.Checkpoint, spawning: opts.Spawn, known: map[sandbox.ID]*Instance{}, evicted: map[sandbox.ID]bool{}}
	if d.checkpoint == nil {
		d.checkpoint = func(string) {}
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	var undo cleanup.Stack
	defer undo.Run()

	if d.boot, err = host.BootID(); err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "the host's boot id cannot be read").WithRemedy("mount /proc")
	}
	namespace := cmp.Or(opts.Namespace, host.PathNamespace(dir))
	if d.instances, err = host.OpenInstances(dir, namespace, d.boot); err != nil {
		return nil, err
	}
	undo.Add(func() { _ = d.instances.Close() })
	if d.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	undo.Add(func() { _ = d.null.Close() })
	d.queue = newQueue(stdruntime.NumCPU())
	if d.starter, err = spawn.NewStarter(cap(d.queue)+1, opts.Spawn); err != nil { // a rollback does not queue
		return nil, err
	}
	undo.Add(func() { _ = d.starter.Close() })
	if d.agent, err = placeAgent(agentDir(dir), opts.Agent); err != nil {
		return nil, err
	}
	undo.Add(func() { _ = d.agent.Close() })
	if d.userFilter, err = seccomp.Filter(seccomp.Options{Told: toldCalls}); err != nil {
		return nil, err
	}
	if d.rootFilter, err = seccomp.Filter(seccomp.Options{Capabilities: rootCapNames, Told: toldCalls}); err != nil {
		return nil, err
	}
	d.reap = opts.Yard || !kept.Works()
	if err := d.openYard(opts.Yard); err != nil {
		return nil, err
	}
	if d.cgroups, err = cgroup.Open(cgroup.Options{Namespace: namespace, Owner: dir, Agents: agentLimits}); err != nil {
		return nil, err
	}
	undo.Add(func() { _ = d.cgroups.Close() })
	store := layer.Options{Dir: layersDir(dir), Kind: opts.Layers, Identity: opts.Store, Logger: d.log, Evict: d.evictFound}
	if d.yard != nil {
		undo.Add(func() { _ = d.yard.Close() })
		store.Attach, store.Detach = d.yard.Keep, d.yard.Release
	}
	if d.layers, err = layer.Open(ctx, store); err != nil {
		return nil, err
	}
	undo.Add(func() { _ = d.layers.Close() })
	if err := d.cgroups.Info().Err(cgroup.Kill); err != nil {
		return nil, err // without it no command could be ended for sure
	}
	if d.mounts, err = bareMounts(opts.Spawn); err != nil {
		return nil, err
	}
	undo.Add(func() { _ = d.mounts.Close() })
	d.changes, d.changesErr = changes.Open(changes.Options{Logger: d.log})
	if d.changesErr == nil && d.layers.Info().Kind == layer.Plain { // on btrfs a layer is a subvolume, with an id of its own
		if d.changesErr = changes.CheckIDs(dir); d.changesErr != nil {
			_ = d.changes.Close()
		}
	}
	if d.changesErr != nil {
		d.log.Warn("changes of files cannot be tracked", "error", d.changesErr)
		d.changes = nil
	}
	if d.uids, err = newRanges(dir, d.agent.Name(), d.mounts, &d.inflight, d.yard != nil, d.cgroups.Info().Err(cgroup.Sockets) != nil, opts.Spawn); err != nil {
		return nil, err
	}
	undo.Add(d.uids.close)
	d.closer = newCloser()
	if d.script, err = furnish.New(d.yard != nil, opts.Spawn); err != nil {
		return nil, err
	}
	undo.Add(func() { _ = d.script.Close() })
	if err := d.sweepStarts(); err != nil {
		return nil, err
	}
	if err := d.reserve(); err != nil {
		return nil, err
	}
	undo.Release()

	running, end := context.WithCancel(context.WithoutCancel(ctx))
	d.patience = serveTimeout
	d.running, d.end, d.reclaims = running, end, make(chan struct{}, 1)
	d.watchers.Go(func() { d.uids.refill(running) })
	d.watchers.Go(func() { d.closer.run(running.Done()) })
	d.watchers.Go(func() { d.recoverStore(running) })
	if d.changes != nil {
		d.watchers.Go(func() {
			if err := d.changes.Run(running); err != nil {
				d.log.Error("tracking of changed files ended", "error", err)
			}
		})
	}
	return d, nil
}

// openYard makes a yard where the kernel needs one.
func (d *Driver) openYard(need bool) (err error) {
	if !need {
		if need, err = mount.NeedsNamespace(); err != nil {
			return fault.Wrap(fault.Unsupported, err, "the host cannot mount a tmpfs")
		}
	}
	if !need {
		return nil
	}
	if d.yard, err = mount.NewNamespace(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "no mount namespace can be made").
			WithRemedy("run `sandpit doctor` on the host")
	}
	return nil
}

// reserve keeps the uid ranges of sandboxes that an earlier server started out
// of the hands of new ones, before anybody asks for either.
func (d *Driver) reserve() error {
	ids, err := d.live()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if s, err := host.ReadState(d.instances.Root, string(id)); err == nil {
			d.uids.reserve(s.UID)
		}
	}
	return nil
}

// live lists the instances that are up, or were when a server ended; some twice.
func (d *Driver) live() ([]sandbox.ID, error) {
	files, err := fs.ReadDir(d.instances.FS(), ".")
	if err != nil {
		return nil, err
	}
	ids := make([]sandbox.ID, len(files))
	for n, f := range files {
		id, _, _ := strings.Cut(f.Name(), ".")
		ids[n] = sandbox.ID(id)
	}
	return ids, nil
}

// Close lets go of everything but the instances, which go on running.
func (d *Driver) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	known := d.known
	d.known = nil
	d.mu.Unlock()
	for _, i := range known {
		i.mu.Lock()
		l := i.live
		i.mu.Unlock()
		if l != nil {
			l.line.close()
			_ = l.pidfd.Close() // ends its watcher
			if l.source != nil {
				_ = l.source.Close()
			}
			_ = l.root.Close()
		}
	}
	d.end()
	d.watchers.Wait()
	d.closer.flush() // what others dropped at their own end
	var errs []error
	if d.changes != nil {
		errs = append(errs, d.changes.Close())
	}
	d.uids.close()
	for _, c := range []interface{ Close() error }{d.script, d.starter, d.mounts, d.cgroups, d.layers, d.agent, d.null, d.instances} {
		errs = append(errs, c.Close())
	}
	if d.yard != nil {
		errs = append(errs, d.yard.Close())
	}
	return errors.Join(errs...)
}

// Open finds an instance that was made before.
func (d *Driver) Open(_ context.Context, h runtime.Handle) (runtime.Instance, error) {
	if !sandbox.ValidID(string(h.ID)) {
		return nil, invalidID(h.ID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fault.New(fault.Unavailable, "the server is ending")
	}
	if i := d.known[h.ID]; i != nil {
		return i, nil
	}
	switch there, err := d.traces(h.ID); {
	case err != nil:
		return nil, err
	case !there:
		return nil, fault.New(fault.NotFound, "nothing is left of sandbox %s on this host", h.ID)
	}
	i := &Instance{d: d, id: h.ID}
	if err := i.adopt(); err != nil {
		return nil, err
	}
	d.known[h.ID] = i
	return i, nil
}

// traces reports whether anything is left of an instance in any place.
func (d *Driver) traces(id sandbox.ID) (bool, error) {
	for _, name := range instanceFiles() {
		if _, err := d.instances.Lstat(string(id) + name); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	if _, err := d.cgroups.Open(string(id)); !fault.Is(err, fault.NotFound) {
		return err == nil, err
	}
	l, err := d.layers.Open(string(id))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, l.Close()
}

// sweepDown frees what the end of a server left of an instance that is down.
func (d *Driver) sweepDown(i *Instance) error {
	if err := d.endGroup(i); err != nil {
		return err
	}
	for _, name := range instanceFiles() {
		if err := i.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// endGroup ends what runs in an instance's groups, and frees them.
func (d *Driver) endGroup(i *Instance) error {
	g, err := d.cgroups.Open(string(i.id))
	if err != nil {
		return nil
	}
	// A half-made one may have a process that waits for its server: it
	// ends by itself, and the kill makes sure.
	_ = g.Kill()
	return g.Remove(context.Background())
}

// List returns all that this driver made and has not removed, and halves of it.
func (d *Driver) List(context.Context) ([]runtime.Handle, error) {
	ids, err := d.found()
	if err != nil {
		return nil, err
	}
	out := make([]runtime.Handle, len(ids))
	for n, id := range ids {
		out[n] = runtime.Handle{ID: id}
	}
	return out, nil
}

// found looks for traces of instances in all places, sorted and each once.
func (d *Driver) found() ([]sandbox.ID, error) {
	ids, err := d.live()
	if err != nil {
		return nil, err
	}
	layers, err := d.layers.List()
	if err != nil {
		return nil, err
	}
	groups, err := d.cgroups.List()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(layers, groups) {
		ids = append(ids, sandbox.ID(name))
	}
	ids = slices.DeleteFunc(ids, func(id sandbox.ID) bool { return !sandbox.ValidID(string(id)) })
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// socketPath names the agent's socket in few bytes, wherever the data
// directory is.
func (d *Driver) socketPath(id sandbox.ID) string {
	return d.instances.Path(string(id) + socketFile)
}
