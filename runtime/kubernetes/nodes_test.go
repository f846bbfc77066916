// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// fromNodes has the server reach pods on other nodes, which policies keep from it as it runs in no pod.
func fromNodes(t *testing.T, c *cluster.Cluster, space string) {
	t.Helper()
	clustertest.Apply(t, c, `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"from-nodes","namespace":"`+space+`"},
"spec":{"podSelector":{},"policyTypes":["Ingress"],"ingress":[{"from":[{"ipBlock":{"cidr":"10.250.0.0/24"}}]}]}}`)
}

// createOn makes a sandbox on a node, by keeping all others from new pods.
func (s *server) createOn(node string, spec runtime.Spec) runtime.Instance {
	s.t.Helper()
	clustertest.Kubectl(s.t, s.c, "cordon", "-l", "kubernetes.io/hostname!="+node)
	defer clustertest.Kubectl(s.t, s.c, "uncordon", "-l", "kubernetes.io/hostname!="+node)
	i := s.create(spec)
	if p, _ := s.pod(spec.ID); p.Spec.NodeName != node {
		s.t.Fatalf("it is on %s, not on %s", p.Spec.NodeName, node)
	}
	return i
}

// A node that is cut off takes its sandboxes along, and nobody else's. Their disks are there for the next start elsewhere, and what still runs on the
// node ends when it is back.
func nodesLost(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	lease := clustertest.ShortLease
	if os.Getenv("SANDPIT_SOAK") == "1" {
		lease = 0 // as clusters have it
	}
	n := clustertest.AddNode(t, c, cluster.NodeOptions{Lease: lease})
	give(t, &n.Machine)
	o := options(t, c)
	fromNodes(t, c, o.Space)
	s := serve(t, c, image, o)
	here, there := s.spec(), s.spec()
	stays := s.createOn(cluster.Node, here)
	leaves := s.createOn(n.Name, there)
	run(t, leaves, "", "echo kept > file; (while sleep 0.1; do date +%s.%N >> ticks; done) >/dev/null 2>&1 &")
	old, _ := s.pod(there.ID)
	if err := n.Cut(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	e, err := leaves.Wait(t.Context())
	if err != nil || e.Cause != sandbox.CauseHost || !strings.Contains(e.Detail, "node "+n.Name+" is lost") {
		t.Fatalf("on the node that is cut off: %+v, %v", e, err)
	}
	t.Logf("after %v: %s", time.Since(began).Round(time.Millisecond), e.Detail)
	if got := run(t, stays, "", "echo here"); got != "here" {
		t.Errorf("on the other node it answers %q", got)
	}
	began = time.Now()
	if err := leaves.Start(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	t.Logf("it was started elsewhere in %v", time.Since(began).Round(time.Millisecond))
	if p, _ := s.pod(there.ID); p.Spec.NodeName != cluster.Node || p.UID == old.UID {
		t.Errorf("it is on %s", p.Spec.NodeName)
	}
	if got := run(t, leaves, "", "cat file"); got != "kept" {
		t.Errorf("its disk has %q", got)
	}
	// What went on where the server does not get to is over: the disks of both nodes are the same.
	if got := run(t, leaves, "", `[ -s ticks ] && tail -1 ticks > last && sleep 1 && [ "$(tail -1 ticks)" = "$(cat last)" ] && echo over`); got != "over" {
		t.Errorf("the command on the node that is cut off writes on: %q", got)
	}
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.nothingRuns(n, string(old.UID))
	clustertest.Kubectl(t, c, "cordon", cluster.Node)
	defer clustertest.Kubectl(t, c, "uncordon", cluster.Node)
	again, err := s.Create(t.Context(), s.spec())
	for fault.Is(err, fault.Exhausted) { // until it is heard of
		again, err = s.Create(t.Context(), s.spec())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, again, "", "echo back"); got != "back" {
		t.Errorf("on the node that is back it answers %q", got)
	}
}

// nothingRuns waits until no process of a pod is on a node.
func (s *server) nothingRuns(n *cluster.Added, uid string) {
	s.t.Helper()
	pattern := strings.ReplaceAll(uid, "-", "[-_]")
	for {
		out, err := n.Command(s.t.Context(), "sh", "-c", `grep -ls "$1" /proc/[0-9]*/cgroup || true`, "sh", pattern).Output()
		if err != nil {
			s.t.Fatal(err)
		}
		if len(out) == 0 {
			return
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatalf("of the pod there is still: %s", out)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// A node whose lease nobody renews, and whose agents answer, is not lost: its kubelet alone may be down.
func agentsAnswer(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	p := clustertest.NewProxy(t, c)
	o := options(t, c)
	o.API.Kubeconfig = p.Kubeconfig
	var doubts atomic.Int32
	twice := make(chan struct{})
	p.First(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/leases/"+cluster.Node) && doubts.Add(1) == 2 {
			close(twice)
		}
		return false
	})
	s := serve(t, c, image, o)
	i := s.create(s.spec())
	s.SetNodePatience(time.Millisecond)
	select {
	case <-twice:
	case <-t.Context().Done():
		t.Fatal("it is not doubted")
	}
	if got := run(t, i, "", "echo here"); got != "here" {
		t.Errorf("it answers %q", got)
	}
}

// A pod that is deleted while nothing comes from the API server's watch is not taken for one that runs: its agent hangs up.
func untold(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	p := clustertest.NewProxy(t, c)
	o := options(t, c)
	o.API.Kubeconfig = p.Kubeconfig
	var deaf, away atomic.Bool
	asked, hears := make(chan struct{}, 100), make(chan struct{})
	p.First(func(w http.ResponseWriter, r *http.Request) bool {
		watch := r.URL.Query().Get("watch") != ""
		switch {
		case watch && strings.HasSuffix(r.URL.Path, "/pods"): // nothing comes, for ever
			if !deaf.Load() {
				return false
			}
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-hears:
			}
			return true
		case away.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			select {
			case asked <- struct{}{}:
			default:
			}
			return true
		}
		return false
	})
	s := serve(t, c, image, o)
	spec := s.spec()
	i := s.create(spec)
	run(t, i, "", "echo kept > file")
	deaf.Store(true)
	p.HangUp()
	away.Store(true)
	clustertest.Kubectl(t, c, "-n", s.o.Space, "delete", "pod", "sandbox-"+string(spec.ID), "--grace-period=0", "--force")
	<-asked
	began := time.Now()
	away.Store(false)
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if e, err := i.Wait(limit); err != nil || e.Cause != sandbox.CauseHost || !strings.Contains(e.Detail, "deleted") {
		t.Errorf("got %+v, %v", e, err)
	}
	t.Logf("it was known %v after the API server answered again", time.Since(began).Round(time.Millisecond))
	deaf.Store(false)
	close(hears)
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cat file"); got != "kept" {
		t.Errorf("its disk has %q", got)
	}
}
