// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/agent"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

const (
	doubtPause    = 5 * time.Second  // before a node is looked at again that is silent, and whose agents answer
	answerTries   = 2                // of an agent
	answerBound   = 2 * time.Second  // for each
	askedAgents   = 8                // of a node at most
	deafAfter     = 5 * time.Second  // without a watch
	leasesRefused = 10 * time.Minute // before it is tried again to watch what the account may not
)

// followNodes is the driver's goroutine: while sandboxes are up or start it follows the leases of nodes, until Close. A node whose lease is not renewed
// any more, and of whose agents none answers, is lost.
func (d *Driver) followNodes() {
	pause := again
	var heard time.Time // until when renewals were
	for d.awaitInterest() {
		began := time.Now()
		err := d.hearLeases(&heard)
		if err == nil || d.running.Err() != nil {
			continue
		}
		if time.Since(began) > againMost {
			pause = again
		}
		wait := pause
		pause = min(2*pause, againMost)
		if missing, asked := d.lackingLeases(d.running); asked == nil && len(missing) > 0 {
			d.log.Info("the server's account may not watch the leases of nodes: a node that dies is told later", "missing", missing)
			wait = leasesRefused
		}
		select {
		case <-d.running.Done():
		case <-time.After(wait):
		}
	}
}

// needNodes increments interested and wakes followNodes. The caller decrements it.
func (d *Driver) needNodes() {
	d.interested.Add(1)
	select {
	case d.interest <- struct{}{}:
	default:
	}
}

// awaitInterest waits until a sandbox is up or starts; false: the driver is closed.
func (d *Driver) awaitInterest() bool {
	for d.interested.Load() == 0 {
		select {
		case <-d.interest:
		case <-d.running.Done():
		}
		if d.running.Err() != nil {
			return false
		}
	}
	return d.running.Err() == nil
}

// hearLeases takes what a watch tells of leases, until it ends, or there is no sandbox any more that needs it.
func (d *Driver) hearLeases(heard *time.Time) error {
	ctx, cancel := context.WithCancel(d.running)
	leases, version, err := kubeapi.Leases().List(ctx, d.api, kubeapi.NodeLeases, "")
	if err != nil {
		cancel()
		return err
	}
	now := time.Now()
	d.nodes.lists(leases, now.Sub(*heard) > deafAfter, now)
	w, err := kubeapi.Leases().Watch(ctx, d.api, kubeapi.NodeLeases, "", version)
	if err != nil {
		cancel()
		return err
	}
	type told struct {
		lease *coordinationv1.Lease
		gone  bool
		err   error
	}
	tells := make(chan told)
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			l, gone, err := w.Next()
			select {
			case tells <- told{l, gone, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	defer func() {
		cancel()
		w.Close()
		reader.Wait()
		*heard = time.Now()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for d.interested.Load() > 0 {
		select {
		case t := <-tells:
			switch {
			case t.err != nil:
				return t.err
			case t.gone:
				d.nodes.leaves(t.lease.Name)
			case d.nodes.renews(t.lease, time.Now()).back:
				d.wake()
			}
		case <-d.interest:
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		late, next := d.nodes.overdue(time.Now())
		for name, silent := range late {
			if !silent || len(d.upOn(name)) > 0 {
				d.suspect(name)
			}
		}
		timer.Reset(next)
	}
	return nil
}

// find finds out whether a node that is doubted is lost: until it is, it is heard of again, or no sandbox is up on it.
func (d *Driver) find(name string) {
	defer d.nodes.done(name)
	for {
		silent, err := d.stillSilent(d.running, name)
		up := d.upOn(name)
		switch {
		case err != nil:
			d.log.Debug("the API server does not say whether a node renews its lease", "node", name, "error", err)
		case !silent || len(up) == 0:
			return
		default:
			answered, asked := anyAnswers(d.running, up)
			switch {
			case answered:
				d.log.Warn("a node is not heard of, and agents on it answer: its kubelet may be down", "node", name)
			case (!asked || !d.o.Direct) && !d.unreadyOn(name): // no agent can be asked without the kubelet, which may be starting: the cluster gives the node up later
			default:
				if d.running.Err() == nil {
					d.lose(name, up)
				}
				return
			}
		}
		select {
		case <-d.running.Done():
			return
		case <-time.After(doubtPause):
		}
	}
}

// stillSilent asks the API server, which asks its store, whether a node renewed its lease. Where the account may not ask that, pods tell which the cluster
// itself takes for not ready.
func (d *Driver) stillSilent(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, doubtPause)
	defer cancel()
	l, err := kubeapi.Leases().Get(ctx, d.api, kubeapi.NodeLeases, name)
	switch {
	case err != nil && d.unreadyOn(name):
		return true, nil
	case fault.Is(err, fault.NotFound): // the node is no part of the cluster any more, which tells what becomes of its pods
		return false, nil
	case err != nil:
		return false, err
	}
	switch r := d.nodes.renews(l, time.Now()); {
	case r.back:
		d.wake()
		return false, nil
	case !r.late:
		return false, nil
	}
	if d.nodes.silences(name) {
		d.wake()
	}
	return true, nil
}

// wake wakes all calls that wait for a change of a pod, so that they look at the state of nodes again.
func (d *Driver) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.known {
		i.mu.Lock()
		close(i.heard)
		i.heard = make(chan struct{})
		i.mu.Unlock()
	}
}

// suspect has a node be doubted, unless it is. A goroutine of the driver's calls it.
func (d *Driver) suspect(name string) {
	if name != "" && d.nodes.doubt(name) {
		d.workers.Go(func() { d.find(name) })
	}
}

// upOn returns the sandboxes that are up on a node, and are to stay so.
func (d *Driver) upOn(name string) (all []*Instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.known {
		i.mu.Lock()
		if i.up && !i.stopping && i.node == name {
			all = append(all, i)
		}
		i.mu.Unlock()
	}
	return all
}

// unreadyOn reports whether the cluster takes a pod on a node for not ready that ran.
func (d *Driver) unreadyOn(name string) bool {
	for _, i := range d.upOn(name) {
		i.mu.Lock()
		unready := i.seen != nil && i.seen.UID == i.pod && isUnready(i.seen)
		i.mu.Unlock()
		if unready {
			return true
		}
	}
	return false
}

// isUnready reports whether a pod is not ready though its container runs, as far as its node last said: our pods have no probes, so that it is
// the cluster which does not hear of the node.
func isUnready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionFalse && runs(p)
		}
	}
	return false
}

// anyAnswers reports whether any agent of some sandboxes answers, and whether any was asked: one whose key is lost is not.
func anyAnswers(ctx context.Context, up []*Instance) (answered, asked bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan bool, askedAgents)
	n := 0
	for _, i := range up {
		i.mu.Lock()
		key, address := i.key, i.address
		i.mu.Unlock()
		if key == nil || n == askedAgents {
			continue
		}
		n++
		go func() { answers <- i.answers(ctx, address, key) }()
	}
	for range n {
		if <-answers {
			answered = true
			cancel()
		}
	}
	return answered, n > 0
}

// answers reports whether its agent does, over a connection of its own.
func (i *Instance) answers(ctx context.Context, address string, key *handshake.Key) bool {
	for range answerTries {
		calls := i.dialer(address, key)
		try, cancel := context.WithTimeout(ctx, answerBound)
		_, err := agent.NewClient(calls.DialContext).Ping(try)
		cancel()
		_ = calls.Close()
		if err == nil {
			return true
		}
	}
	return false
}

// lose ends the sandboxes of a node that is lost, and deletes their pods, which nobody else does while the node is away: their names are free, and what
// held their disks for them may let go. A node that comes back ends what it has of pods that are gone.
func (d *Driver) lose(name string, up []*Instance) {
	why := fmt.Sprintf("its node %s is lost: its agent does not answer, and the node has not been heard of", name)
	if since := d.nodes.silentSince(name, time.Now()); since > 0 {
		why = fmt.Sprintf("%s for %v", why, since.Round(time.Second))
	}
	d.log.Error("a node is lost, and with it what runs there", "node", name, "sandboxes", len(up))
	for _, i := range up {
		i.mu.Lock()
		pod, there := i.pod, i.up && i.node == name
		if there {
			i.endsLocked(runtime.Exit{Cause: sandbox.CauseHost, Detail: why})
		}
		i.mu.Unlock()
		if !there {
			continue
		}
		i.mark(lostFile)
		if err := kubeapi.Pods().Delete(d.running, d.api, d.space, objectName(i.id), pod, 0); err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			d.log.Warn("the pod of a lost node is not deleted; the next start does it", "sandbox", i.id, "error", err)
		}
	}
}

// lackingLeases returns the rights to leases of nodes that the server's account lacks.
func (d *Driver) lackingLeases(ctx context.Context) (missing []string, err error) {
	for _, verb := range []string{"get", "list", "watch"} {
		r := kubeapi.Right{Verb: verb, Group: "coordination.k8s.io", Resource: "leases"}
		may, err := d.api.May(ctx, kubeapi.NodeLeases, r)
		if err != nil {
			return nil, err
		}
		if !may {
			missing = append(missing, r.String())
		}
	}
	return missing, nil
}
