// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/blob"
	"sandpit.dev/blob/chunks"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// Options configure a driver.
type Options struct {
	Dir       string // of the server's own
	Namespace string // what this server's objects are known by: 12 characters of a-z and 0-9
	API       kubeapi.Environment
	Space     string // the cluster's namespace; "": that of the kubeconfig, or of the pod that this process runs in

	Images       string     // what the references of images begin with: a registry and a path in it; "": localhost/sandpit, where nodes have them already
	StorageClass string     // of claims; "": the cluster's default
	VolumeClass  string     // of volumes' claims; "": StorageClass
	Snapshots    blob.Store // where what snapshots hold is, which nobody else writes to; nil: the directory
	VolumeAccess string     // of volumes: ReadWriteMany or ReadWriteOnce; "": ReadWriteOnce
	RuntimeClass string     // of pods; "": the cluster's default
	Overcommit   float64    // what limits are divided by for what pods request; below 1 it is 1
	Direct       bool       // agents are reached on their pods' addresses, and not by forwarding a port
	Users        bool       // pods have user namespaces
	Placement    Placement
	ImageRoot    bool // sandboxes do not keep their roots where they could: outside of some directories each start is the image again

	// ProveEvery is how often a pod proves that the cluster's network keeps to policies, beginning with Open: without a proof no sandbox gets a
	// network. 0: never, and networks do not wait for it.
	ProveEvery time.Duration

	Agent     []byte
	Publisher runtime.Publisher // puts images where Images says; nil: they are there
	Patient   bool              // Open works without an API server that answers; what needs one is refused until it does
	Logger    *slog.Logger      // nil drops it
}

// Driver makes sandboxes in one namespace of a cluster.
type Driver struct {
	o         Options
	api       *kubeapi.Client
	namespace string // of the server
	space     string // of the cluster
	agent     string // reference of the image with the agent
	log       *slog.Logger
	files     *os.Root // the driver's directory
	instances *os.Root // in it, a directory for each sandbox

	claimPatience time.Duration // how long a claim gets to be bound
	startPatience time.Duration // how long a pod gets to run
	tried         chan struct{} // closed when it was tried once whether the network keeps to policies

	chunks *chunks.Store
	swept  chan struct{} // closed when what earlier servers left of snapshots was removed, or could not be

	volumes sync.RWMutex // held to write while one is removed, to read while a pod is made with some

	past       past
	nodes      nodes
	interested atomic.Int64  // sandboxes that are up or start: nodes are followed for them
	interest   chan struct{} // told of one more

	running context.Context // until Close
	stop    context.CancelFunc
	workers sync.WaitGroup

	mu        sync.Mutex
	known     map[sandbox.ID]*Instance
	keeping   map[sandbox.ID]bool    // snapshots that are being made
	publishes map[string]*publishing // by reference; those that failed are tried again
	minor     int                    // of the API server's version; 0: not known yet
	proof     error                  // why it is not proven that the network keeps to policies
	provenAt  time.Time              // when it was last
	ownStack  bool                   // the pods that were to prove it had a network stack that is not the kernel's
	// Whether it was asked if new sandboxes keep their roots, and whether they do.
	askedRoots, keepsRoots bool
	denies                 error // why there is no policy that keeps pods from the network; errUntried: it was not tried yet
}

var _ runtime.Driver = (*Driver)(nil)

var errUntried = fault.New(fault.Unavailable, "it has not been tried yet")

const instancesDir = "instances"

// Open opens a driver of a cluster whose API server answers, or of one that may come.
func Open(ctx context.Context, o Options) (_ *Driver, err error) {
	api, err := kubeapi.New(o.API)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(o.Agent)
	o.Images = cmp.Or(o.Images, "localhost/sandpit")
	d := &Driver{
		o: o, api: api, namespace: o.Namespace, space: cmp.Or(o.Space, api.Namespace(), "default"),
		agent: AgentReference(o.Images, hex.EncodeToString(sum[:])), log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		known: make(map[sandbox.ID]*Instance), keeping: make(map[sandbox.ID]bool), publishes: make(map[string]*publishing), denies: errUntried, claimPatience: claimPatience, startPatience: startPatience,
		tried: make(chan struct{}), swept: make(chan struct{}), proof: errUntried, interest: make(chan struct{}, 1),
	}
	d.running, d.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	for _, dir := range []string{instancesDir, snapshotsDir} {
		if err := os.MkdirAll(filepath.Join(o.Dir, dir), 0o700); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the directory of the kubernetes runtime cannot be made")
		}
	}
	if d.files, err = os.OpenRoot(o.Dir); err == nil {
		d.instances, err = d.files.OpenRoot(instancesDir)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the directory of the kubernetes runtime cannot be opened")
	}
	left, err := d.openChunks()
	if err != nil {
		return nil, err
	}
	version, away := d.begin(ctx)
	if away != nil && (!o.Patient || ctx.Err() != nil || !fault.Is(away, fault.Unavailable)) {
		return nil, away
	}
	if away != nil {
		d.log.Warn("the kubernetes runtime has no API server yet; it is looked for until one answers", "server", api.Host(), "error", away)
	}
	d.workers.Go(func() { d.follow(version) })
	d.workers.Go(d.followNodes)
	d.workers.Go(func() { d.sweep(left) })
	if o.ProveEvery > 0 {
		d.workers.Go(d.proveAgain)
	}
	return d, nil
}

// begin learns what the cluster is and has, and returns from which version on to follow it.
func (d *Driver) begin(ctx context.Context) (version string, err error) {
	if err := d.learn(ctx); err != nil {
		return "", err
	}
	if err := d.deny(ctx); err != nil {
		d.log.Warn("no sandbox is made: there is no policy that keeps pods from the network", "namespace", d.space, "error", err)
	}
	return d.look(ctx)
}

// oldest is the first minor version of Kubernetes 1 that is supported.
const oldest = 33

// learn learns the API server's version.
func (d *Driver) learn(ctx context.Context) error {
	d.mu.Lock()
	known := d.minor > 0
	d.mu.Unlock()
	if known {
		return nil
	}
	v, err := d.api.Version(ctx)
	if err != nil {
		return err
	}
	minor := minorOf(v)
	if minor < oldest {
		return fault.New(fault.Unsupported, "the API server at %s is of Kubernetes %s, and 1.%d is the oldest that is supported", d.api.Host(), sandbox.Clip(v.GitVersion, 40), oldest).
			WithRemedy("upgrade the cluster, or name another by kubernetes.context")
	}
	d.mu.Lock()
	d.minor = minor
	d.mu.Unlock()
	return nil
}

// work runs do in a goroutine that Close waits for, unless the driver is closed.
func (d *Driver) work(do func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running.Err() != nil {
		return false
	}
	d.workers.Go(do)
	return true
}

// finishing returns a context for what is finished or taken back whatever becomes of the caller.
func (d *Driver) finishing(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), bound, fault.New(fault.Unavailable, "the cluster at %s did not do within %v what it was asked", d.api.Host(), bound).
		WithRemedy("see by kubectl get events whether it is busy or broken"))
}

func errClosed() error { return fault.New(fault.Unavailable, "the kubernetes runtime is closed") }

// Close releases the driver. Pods go on.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.stop() // from here on published begins no worker
	d.mu.Unlock()
	d.workers.Wait()
	d.mu.Lock()
	known := d.known
	d.known = map[sandbox.ID]*Instance{}
	d.mu.Unlock()
	for _, i := range known {
		i.hangUp()
	}
	d.api.Close()
	var err error
	if d.chunks != nil {
		err = d.chunks.Close()
	}
	if s, ok := d.o.Snapshots.(interface{ Close() }); ok {
		s.Close()
	}
	for _, root := range []*os.Root{d.instances, d.files} {
		if root != nil {
			err = errors.Join(err, root.Close())
		}
	}
	return err
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

// List returns the sandboxes of this server's that have a claim.
func (d *Driver) List(ctx context.Context) ([]runtime.Handle, error) {
	claims, _, err := kubeapi.Claims().List(ctx, d.api, d.space, d.ours())
	if err != nil {
		return nil, err
	}
	var out []runtime.Handle
	for _, c := range claims {
		if id := c.Labels[labelSandbox]; c.DeletionTimestamp == nil && sandbox.ValidID(id) {
			out = append(out, runtime.Handle{ID: sandbox.ID(id)})
		}
	}
	return out, nil
}
