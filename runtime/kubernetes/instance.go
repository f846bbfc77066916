// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/semaphore"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// Instance is one claim, and a pod while it is up. The driver has one value for each.
type Instance struct {
	d    *Driver
	id   sandbox.ID
	verb *semaphore.Weighted // held by Start, Stop and Remove, one at a time

	keepsRoot bool // its root is an overlay whose changes are on the claim; set before others know the instance

	mu       sync.Mutex
	heard    chan struct{} // closed, and made anew, when seen or gone changes
	seen     *corev1.Pod   // the last that the cluster told of
	gone     types.UID     // of the last pod that is known to be gone
	pod      types.UID     // of the pod that is up
	address  string        // of that
	node     string        // that it is on
	began    time.Time     // when its pod was known to be there
	up       bool
	down     chan struct{} // closed when it is down; nil: it never was up here
	last     runtime.Exit  // why it is down
	stopping bool
	losing   string // what a stop that is under way says of what it loses
	removed  bool
	key      *handshake.Key // of the agent that is up; nil: it is lost
	calls    *mux.Dialer
}

var _ runtime.Instance = (*Instance)(nil)

// newInstance returns an instance that is not registered yet.
func (d *Driver) newInstance(id sandbox.ID) *Instance {
	return &Instance{d: d, id: id, verb: semaphore.NewWeighted(1), heard: make(chan struct{})}
}

// Handle is the id alone: the rest is the pod's labels.
func (i *Instance) Handle() runtime.Handle { return runtime.Handle{ID: i.id} }

// begin waits for the verb that is under way to end, or for ctx, and has verb held until end is called.
func (i *Instance) begin(ctx context.Context) (end func(), err error) {
	if err := i.verb.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { i.verb.Release(1) }, nil
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

// rises makes it up: the pod that is given runs, and its agent has the key.
func (i *Instance) rises(p *corev1.Pod, key *handshake.Key) {
	broke := make(chan struct{}, 1)
	down := i.risesTo(p, key, broke)
	i.d.work(func() { i.notice(p.UID, down, broke) })
}

func (i *Instance) risesTo(p *corev1.Pod, key *handshake.Key, broke chan<- struct{}) (down <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.up, i.down, i.stopping, i.losing, i.last = true, make(chan struct{}), false, "", runtime.Exit{}
	i.pod, i.address, i.node, i.key, i.began = p.UID, p.Status.PodIP, p.Spec.NodeName, key, time.Now()
	i.d.needNodes()
	i.calls = nil
	if key != nil {
		i.calls = i.noticing(p.Status.PodIP, key, broke)
	}
	// What came meanwhile is heard.
	if i.gone == p.UID {
		i.endsLocked(runtime.Exit{Cause: sandbox.CauseHost, Detail: podDeleted})
	} else if i.seen != nil && i.seen.UID == p.UID {
		if exit, over := exitOf(i.seen); over {
			i.endsLocked(exit)
		}
	}
	return i.down
}

// ends makes it down, unless it is.
func (i *Instance) ends(exit runtime.Exit) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endsLocked(exit)
}

func (i *Instance) endsLocked(exit runtime.Exit) {
	if !i.up {
		return
	}
	if i.stopping {
		exit = runtime.Exit{Cause: sandbox.CauseStopped, Detail: i.losing}
	}
	i.up, i.last = false, exit
	i.d.interested.Add(-1)
	close(i.down)
	if i.calls != nil {
		_ = i.calls.Close() // nobody answers there any more
		i.calls = nil
	}
}

// hangUp closes its connection; it goes on.
func (i *Instance) hangUp() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.calls != nil {
		_ = i.calls.Close()
	}
}

// Open finds a sandbox of this server.
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
	if err := d.learn(ctx); err != nil {
		return nil, err
	}
	c, err := kubeapi.Claims().Get(ctx, d.api, d.space, objectName(h.ID))
	if err == nil && (c.Labels[labelServer] != d.namespace || c.DeletionTimestamp != nil) {
		err = fault.New(fault.NotFound, "the claim is another's, or is being deleted")
	}
	if fault.Is(err, fault.NotFound) {
		if err := errors.Join(d.discard(pendingFile(h.ID)), d.instances.RemoveAll(string(h.ID))); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "what is left of sandbox %s cannot be removed", h.ID)
		}
		return nil, fault.New(fault.NotFound, "sandbox %s has no claim in the namespace %s", h.ID, d.space)
	}
	if err != nil {
		return nil, err
	}
	found := d.newInstance(h.ID)
	found.keepsRoot = c.Annotations[annotationRoot] != ""
	end, err := found.begin(ctx)
	if err != nil {
		return nil, err
	}
	if i = d.register(found); i != found {
		end()
		return i, nil
	}
	defer end()
	if err := i.adopt(ctx); err != nil {
		d.forget(i)
		return nil, err
	}
	return i, nil
}

// adopt finds out what became of an instance of an earlier server's. verb is held.
func (i *Instance) adopt(ctx context.Context) error {
	i.last = runtime.Exit{Cause: sandbox.CauseHost, Detail: "its pod is gone"}
	if i.has(stoppedFile) {
		i.last = runtime.Exit{Cause: sandbox.CauseStopped}
	}
	p, err := i.d.podOf(ctx, i.id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if p.Annotations[annotationReader] != "" { // the server ended while it read the disk
		return i.deletePod(ctx)
	}
	if exit, over := exitOf(p); over {
		if !i.has(stoppedFile) {
			i.last = exit
		}
		return nil
	}
	if p.Status.PodIP == "" || !runs(p) || i.has(stoppedFile) || i.has(diskFile) {
		i.last = runtime.Exit{Cause: sandbox.CauseHost, Detail: "the server ended while its pod began or ended"}
		return nil
	}
	key, err := i.keptKey(p.UID)
	if err != nil {
		i.d.log.Warn("a sandbox's agent cannot be reached until the sandbox is stopped and started: its key is lost", "sandbox", i.id, "error", err)
	}
	i.mu.Lock()
	if i.seen == nil {
		i.seen = p
	}
	i.mu.Unlock()
	i.rises(p, key)
	return nil
}

// podOf returns a sandbox's pod. One of another's that has the name is fault.Conflict.
func (d *Driver) podOf(ctx context.Context, id sandbox.ID) (*corev1.Pod, error) {
	p, err := kubeapi.Pods().Get(ctx, d.api, d.space, objectName(id))
	if err != nil {
		return nil, err
	}
	if p.Labels[labelServer] != d.namespace || p.Labels[labelSandbox] != string(id) {
		return nil, fault.New(fault.Conflict, "the pod %s in the namespace %s lacks the labels of this server's", objectName(id), d.space).
			WithRemedy("delete or rename it: kubectl -n %s delete pod %s", d.space, objectName(id))
	}
	return p, nil
}

var errNoKey = errors.New("there is none for this pod")
