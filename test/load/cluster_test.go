// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/client"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
)

// disturbed is a cluster with a server, parts of which end while sandboxes are used.
type disturbed struct {
	t    *testing.T
	c    *cluster.Cluster
	h    *host
	node *cluster.Added // beside the first; nil: there is none
}

// TestSurviveKillsOnACluster kills the server and parts of its cluster at random moments, while sandboxes are made, used, stopped, started, snapshotted and
// deleted. What was answered is kept, and after all was deleted nothing is left.
func TestSurviveKillsOnACluster(t *testing.T) {
	d := disturb(t)
	ctx := t.Context()
	if soak() {
		d.node = d.addNode()
	}
	l := newNoted(d.h)
	parts := []string{"the server", cluster.APIServer, cluster.Kubelet, cluster.Containerd}
	if soak() {
		parts = append(parts, cluster.Etcd, cluster.Controllers, cluster.Scheduler, "the API server for a while", "a node")
	}
	calls := 0
	for round := range length(len(parts), 120) {
		part := parts[round%len(parts)]
		began := time.Now()
		n, err := d.underLoad(ctx, l, round, part)
		calls += n
		used := time.Since(began)
		if err != nil {
			t.Fatalf("round %d, %s: %v", round, part, err)
		}
		if err := l.kept(ctx); err != nil {
			t.Fatalf("round %d, after the end of %s: %v", round, part, err)
		}
		t.Logf("%s: %v, and all is there again after %v", part, used.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
	t.Logf("%d calls, of which %d made no promise; at the end %d sandboxes and %d snapshots, %d sandboxes deleted", calls, l.broken, len(l.boxes), len(l.snapshots), len(l.dead))
	if err := errors.Join(l.empty(ctx), d.nothingLeft(ctx)); err != nil {
		t.Error(err)
	}
}

// disturb starts a cluster and a server in its network.
func disturb(t *testing.T) *disturbed {
	t.Helper()
	c := clustertest.Start(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := hostIn(t, dir, "127.0.0.1:0")
	d := &disturbed{t: t, c: c, h: h}
	d.give(&c.Machine)
	const space = "sandboxes"
	clustertest.Kubectl(t, c, "create", "namespace", space)
	clustertest.Apply(t, c, `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"from-nodes","namespace":"`+space+`"},
"spec":{"podSelector":{},"policyTypes":["Ingress"],"ingress":[{"from":[{"ipBlock":{"cidr":"10.250.0.0/24"}}]}]}}`)
	h.env = []string{"SANDPIT_RUNTIMES=kubernetes", "SANDPIT_KUBERNETES_KUBECONFIG=" + c.Kubeconfig, "SANDPIT_KUBERNETES_NAMESPACE=" + space, "SANDPIT_KUBERNETES_REACH=pod"}
	h.within, h.dial = clustertest.Within(c), clustertest.Dialer(c)
	t.Cleanup(h.sweep)
	h.start()
	return d
}

// give gives a node the images of sandboxes.
func (d *disturbed) give(m *cluster.Machine) {
	d.t.Helper()
	if _, err := program(); err != nil {
		d.t.Fatal(err)
	}
	built, err := programDir()
	if err != nil {
		d.t.Fatal(err)
	}
	agent, err := os.ReadFile(filepath.Join(built, "agent"))
	if err != nil {
		d.t.Fatal(err)
	}
	sum, image := sha256.Sum256(agent), imagetest.Python(d.t)
	if err := errors.Join(m.Import(d.t.Context(), "localhost/sandpit/agent:"+hex.EncodeToString(sum[:]), agent, "sandpit-agent"),
		m.Lend(d.t.Context(), "localhost/sandpit/image:"+strings.TrimPrefix(image.Digest, "sha256:"), image.Root)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disturbed) addNode() *cluster.Added {
	d.t.Helper()
	n, err := d.c.AddNode(d.t.Context(), cluster.NodeOptions{Lease: clustertest.ShortLease})
	if err != nil {
		d.t.Fatal(err)
	}
	d.give(&n.Machine)
	return n
}

// underLoad ends a part at a random moment while callers use sandboxes, and waits until all parts are there again. It returns how many calls were made.
func (d *disturbed) underLoad(ctx context.Context, l *noted, round int, part string) (int, error) {
	const callers = 4
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	g := group{limit: callers}
	began := make(chan struct{}, 1<<10)
	for caller := range callers {
		g.do(func() error {
			for n := 0; ; n++ {
				select {
				case <-over:
					return nil
				case began <- struct{}{}:
				}
				if err := l.act(run, fmt.Sprintf("r%d-c%d-n%d", round, caller, n)); err != nil {
					return err
				}
			}
		})
	}
	idle := make(chan struct{}) // closed once all callers have ended, as after an error of each
	go func() { g.wg.Wait(); close(idle) }()
	calls := 0
	begins := func() {
		select {
		case <-began:
			calls++
		case <-idle:
		}
	}
	for range callers + rand.IntN(callers) {
		begins()
	}
	time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond)))) // no event marks a random moment within a call
	err := d.end(ctx, part)
	for range 2 * callers { // some calls meanwhile and behind it
		if part != "the server" && err == nil {
			begins()
		}
	}
	close(over)
	if part == "the server" {
		cancel() // the client would repeat what broke off
	}
	return calls, errors.Join(err, g.wait(), d.again(ctx, part))
}

// end ends a part.
func (d *disturbed) end(ctx context.Context, part string) error {
	switch part {
	case "the server":
		d.h.kill()
		return nil
	case "the API server for a while":
		if err := d.c.Hold(ctx, cluster.APIServer); err != nil {
			return err
		}
		time.Sleep(3 * time.Second) // longer than clients take to ask again, shorter than calls wait
		return d.c.Release(cluster.APIServer)
	case "a node":
		return d.node.Die()
	}
	return d.c.Kill(ctx, part)
}

// again waits until what was ended is there again.
func (d *disturbed) again(ctx context.Context, part string) error {
	switch part {
	case "the server":
		d.h.start()
	case "a node":
		if err := d.node.Close(ctx); err != nil {
			return err
		}
		d.node = d.addNode()
	}
	clustertest.Answers(d.t, d.c)
	return nil
}

// nothingLeft waits until the cluster has no objects of sandboxes.
func (d *disturbed) nothingLeft(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		out, err := d.c.Kubectl(limit, "-n", "sandboxes", "get", "pods,pvc", "-l", "sandpit.dev/sandbox", "-o", "name").Output()
		if err == nil && len(out) == 0 {
			return nil
		}
		select {
		case <-limit.Done():
			return fmt.Errorf("after all was deleted there is %s: %w", out, cmp.Or(err, limit.Err()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// empty deletes all sandboxes and snapshots.
func (l *noted) empty(ctx context.Context) error {
	if err := l.h.deleteAll(ctx); err != nil {
		return err
	}
	for s, err := range l.h.client.Snapshots(ctx, client.SnapshotQuery{}) {
		if err == nil {
			err = l.h.client.DeleteSnapshot(ctx, s.ID)
		}
		if err != nil {
			return err
		}
	}
	page, err := l.h.client.ListPage(ctx, client.ListQuery{})
	if err == nil && page.Total != 0 {
		err = fmt.Errorf("after deleting all there are %d sandboxes", page.Total)
	}
	return err
}
