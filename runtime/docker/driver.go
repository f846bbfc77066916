// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/linux/steer"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Options configure a driver.
type Options struct {
	Dir       string // of the server's own; an Engine on this machine sees it, too
	Namespace string // what this server's containers are known by: 12 characters of a-z and 0-9
	Engine    engineapi.Environment
	Runtime   string // OCI runtime that containers get, of those that the Engine has; "": its default
	Agent     []byte
	Stream    bool         // agents are reached by streams, also where the Engine sees Dir
	Patient   bool         // Open works without an Engine that answers; what needs one is refused until it does
	Logger    *slog.Logger // nil drops it

	clock engineapi.Clock // of what bounds calls to the Engine
}

// Driver makes sandboxes on one Engine.
type Driver struct {
	engine    *engineapi.Client
	clock     engineapi.Clock
	namespace string
	runtime   string
	stream    atomic.Bool // agents of new containers are reached by streams of the Engine's, and by no sockets
	program   []byte
	digest    string // of program: 64 hex digits
	log       *slog.Logger
	instances *os.Root // a directory for each sandbox
	layers    *os.Root // snapshots that came from outside, until a sandbox is made of them
	fresh     *os.Root // volumes that no sandbox has had
	depth     int      // of layers, from which on a snapshot's are made one

	running context.Context // until Close
	stop    context.CancelFunc
	workers sync.WaitGroup

	mu      sync.Mutex
	known   map[sandbox.ID]*Instance
	loads   map[string]*loading // by reference
	keeping map[sandbox.ID]bool // snapshots that are being made
	someOld bool                // there may be images that are removed once nothing uses them
	base    baseTree
	root    *user // who containers' root is on the host; nil: not known yet

	trial    func() error // whether this process can steer networks, found out once
	agent    once         // the volume with the agent is there
	disks    foundLimits
	begun    atomic.Int64 // how often the Engine was lost
	chosen   once         // stream is known
	swept    once         // what an earlier server left is removed
	joining  chanLock     // held while an image is made of layers
	removing chanLock     // held while images are removed that nothing uses any more
	volumes  sync.RWMutex // held while a volume is made or removed; read-held while containers get some
	handing  chanLock     // held while a volume is given to its first sandbox's user
}

var (
	_ runtime.Driver      = (*Driver)(nil)
	_ runtime.Snapshotter = (*Driver)(nil)
)

const (
	instancesDir = "instances"
	layersDir    = "layers"
	freshDir     = "volumes"
)

// Open opens a driver of an Engine that answers, or of one that may come.
func Open(ctx context.Context, o Options) (_ *Driver, err error) {
	engine, err := engineapi.NewWithClock(o.Engine, o.clock)
	if err != nil {
		return nil, err
	}
	away := engine.Connect(ctx)
	if away != nil && (!o.Patient || ctx.Err() != nil) {
		engine.Close()
		return nil, away
	}
	d := &Driver{
		engine: engine, clock: o.clock, namespace: o.Namespace, runtime: o.Runtime, program: o.Agent, depth: flattenDepth,
		log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), known: make(map[sandbox.ID]*Instance), loads: make(map[string]*loading),
		keeping: make(map[sandbox.ID]bool),
		trial:   sync.OnceValue(steer.Try),
	}
	// What a container's root makes in a directory of a server that is not root, that server cannot remove.
	d.stream.Store(o.Stream || !engine.Host().Local() || os.Geteuid() != 0)
	sum := sha256.Sum256(o.Agent)
	d.digest = hex.EncodeToString(sum[:])
	d.running, d.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	for name, root := range map[string]**os.Root{instancesDir: &d.instances, layersDir: &d.layers, freshDir: &d.fresh} {
		dir := filepath.Join(o.Dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the directory of the docker runtime cannot be made")
		}
		if *root, err = os.OpenRoot(dir); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the directory of the docker runtime cannot be opened")
		}
	}
	var events *engineapi.Events
	if away == nil {
		if events, away = d.begin(ctx); away != nil && (!o.Patient || ctx.Err() != nil || !fault.Is(away, fault.Unavailable)) {
			return nil, away
		}
	}
	if away != nil {
		d.log.Warn("the docker runtime has no Engine yet; it is looked for until one answers", "engine", engine.Host().String(), "error", away)
		d.workers.Go(func() {
			events := d.listenAgain(true)
			if events != nil {
				d.log.Info("the docker runtime has its Engine", "engine", engine.Host().String())
				report(d.log, "remove what an earlier server left on the Engine", d.clean(d.running))
			}
			d.follow(events)
		})
		return d, nil
	}
	d.workers.Go(func() { d.follow(events) })
	return d, nil
}

// begin removes what an earlier server left on the Engine, and listens to its events.
func (d *Driver) begin(ctx context.Context) (*engineapi.Events, error) {
	if err := d.clean(ctx); err != nil {
		return nil, err
	}
	return d.listen(ctx)
}

// within returns a context that bounds several calls to the Engine together.
func (d *Driver) within(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	cause := fault.New(fault.Unavailable, "the Engine at %s did not do within %v what it was asked", d.engine.Host(), bound).
		WithRemedy("see by docker ps whether it answers, and how busy it is; what it did of it is found out before the sandbox's next call")
	return engineapi.WithTimeout(ctx, d.clock, bound, cause)
}

// finishing is within for what is finished or taken back whatever becomes of the caller, and of an earlier bound.
func (d *Driver) finishing(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	return d.within(context.WithoutCancel(ctx), bound)
}

func report(log *slog.Logger, what string, err error) {
	if err != nil {
		log.Error(what, "error", err)
	}
}

// Close releases the driver. Containers go on.
func (d *Driver) Close() error {
	d.stop()
	d.workers.Wait()
	d.engine.Close()
	var err error
	for _, root := range []*os.Root{d.instances, d.layers, d.fresh} {
		if root != nil {
			err = errors.Join(err, root.Close())
		}
	}
	return err
}

// Open finds a container of this server.
func (d *Driver) Open(ctx context.Context, h runtime.Handle) (runtime.Instance, error) {
	if !sandbox.ValidID(string(h.ID)) {
		return nil, fault.InvalidField("id", "%q is not a valid sandbox id", sandbox.Clip(string(h.ID), 40))
	}
	d.mu.Lock()
	i := d.known[h.ID]
	d.mu.Unlock()
	if i != nil {
		return i, nil
	}
	if err := d.clean(ctx); err != nil {
		return nil, err
	}
	list, err := d.find(ctx, labelSandbox+"="+string(h.ID))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		// A server that ended on its way left at most a directory.
		if _, err := d.instances.Lstat(string(h.ID)); !errors.Is(err, fs.ErrNotExist) {
			gone := d.newInstance(h.ID)
			gone.last = runtime.Exit{Cause: sandbox.CauseHost, Detail: "its container is gone"}
			return d.register(gone), nil
		}
		return nil, fault.New(fault.NotFound, "sandbox %s has no container on the Engine at %s", h.ID, d.engine.Host())
	}
	found := d.newInstance(h.ID)
	found.container = list[0].container
	end, err := found.begin(ctx)
	if err != nil {
		return nil, err
	}
	if i = d.register(found); i != found {
		end()
		if end, err = i.begin(ctx); err != nil {
			return nil, err
		}
	}
	defer end()
	if err := i.adopt(ctx); err != nil {
		d.forget(i)
		return nil, err
	}
	return i, nil
}

// register returns the driver's value for an instance: the one that is there, else i.
func (d *Driver) register(i *Instance) *Instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	if have := d.known[i.id]; have != nil {
		return have
	}
	d.known[i.id] = i
	return i
}

func (d *Driver) forget(i *Instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[i.id] == i {
		delete(d.known, i.id)
	}
}

// List returns this server's containers, and directories of containers that are gone.
func (d *Driver) List(ctx context.Context) ([]runtime.Handle, error) {
	list, err := d.find(ctx)
	if err != nil {
		return nil, err
	}
	var out []runtime.Handle
	seen := map[sandbox.ID]bool{}
	for _, f := range list {
		out = append(out, runtime.Handle{ID: f.id})
		seen[f.id] = true
	}
	entries, err := fs.ReadDir(d.instances.FS(), ".")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the directory of the docker runtime cannot be read")
	}
	for _, e := range entries {
		if id := sandbox.ID(e.Name()); sandbox.ValidID(e.Name()) && !seen[id] {
			out = append(out, runtime.Handle{ID: id})
		}
	}
	return out, nil
}
