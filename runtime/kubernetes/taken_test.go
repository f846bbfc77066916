// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"net/http"
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

// A list that lacks a pod which is there, as one of several API servers may give it that lags behind, takes nothing down.
func fromThePast(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	p := clustertest.NewProxy(t, c)
	o := options(t, c)
	o.API.Kubeconfig = p.Kubeconfig
	var lags, expires atomic.Bool
	old := make(chan struct{}, 100)
	p.First(func(w http.ResponseWriter, r *http.Request) bool {
		switch pods, watch := strings.HasSuffix(r.URL.Path, "/pods"), r.URL.Query().Get("watch") != ""; {
		case pods && watch && expires.CompareAndSwap(true, false):
			_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}` + "\n"))
			return true
		case pods && !watch && r.Method == http.MethodGet && lags.Load():
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`))
			old <- struct{}{}
			return true
		}
		return false
	})
	s := serve(t, c, image, o)
	i := s.create(s.spec())
	lags.Store(true)
	expires.Store(true)
	p.HangUp()
	<-old
	<-old // it was asked again, and so the first was not believed
	if got := run(t, i, "", "echo there"); got != "there" {
		t.Errorf("it answers %q", got)
	}
	lags.Store(false)
	if got := run(t, s.create(s.spec()), "", "echo more"); got != "more" {
		t.Errorf("another answers %q", got)
	}
}

// Of two servers with one name, as of a copied data directory, the second has no key to what the first began. It can stop it and start it, and the
// first sees that it is gone. There is one pod at all times.
func twoServers(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	one := serve(t, c, image, o)
	spec := one.spec()
	first := one.create(spec)
	run(t, first, "", "echo kept > file")
	o.Dir = t.TempDir()
	two := serve(t, c, image, o)
	second, err := two.Open(t.Context(), first.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Dial(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "key") {
		t.Errorf("the second dials: %v", err)
	}
	if err := second.Start(t.Context(), spec); !fault.Is(err, fault.State) {
		t.Errorf("the second starts what runs: %v", err)
	}
	if err := second.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if e, err := first.Wait(t.Context()); err != nil || e.Cause == sandbox.CauseStopped {
		t.Errorf("the first sees %+v, %v", e, err)
	}
	if err := second.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Dial(t.Context()); !fault.Is(err, fault.State) {
		t.Errorf("the first dials: %v", err)
	}
	if got := run(t, second, "", "cat file"); got != "kept" {
		t.Errorf("the disk has %q", got)
	}
	if out := clustertest.Kubectl(t, c, "-n", o.Space, "get", "pods", "-l", "sandpit.dev/sandbox="+string(spec.ID), "-o", "name"); strings.Count(out, "pod/") != 1 {
		t.Errorf("there are %s", out)
	}
}

// A node that is drained takes its sandboxes down, with their disks kept.
func drained(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	spec := s.spec()
	i := s.create(spec)
	run(t, i, "", "echo kept > file")
	out := clustertest.Kubectl(t, c, "drain", cluster.Node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector", "sandpit.dev/sandbox="+string(spec.ID))
	e, err := i.Wait(t.Context())
	if err != nil || e.Cause != sandbox.CauseHost || e.Detail == "" {
		t.Errorf("drained: %+v, %v: %s", e, err, out)
	}
	if err := i.Start(t.Context(), spec); !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "unschedulable") {
		t.Errorf("with no node that takes it: %v", err)
	}
	clustertest.Kubectl(t, c, "uncordon", cluster.Node)
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cat file"); got != "kept" {
		t.Errorf("the disk has %q", got)
	}
}

// A start whose disk does not come says why: that it is one of another node's own, or what the cluster says.
func heldElsewhere(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	spec := s.spec()
	i := s.create(spec)
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	volume := clustertest.Kubectl(t, c, "-n", s.o.Space, "get", "pvc", "sandbox-"+string(spec.ID), "-o", "jsonpath={.spec.volumeName}")
	clustertest.Kubectl(t, c, "patch", "pv", volume, "--type=merge", `--patch={"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["node7"]}]}]}}}}`)
	err := i.Start(t.Context(), spec)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "is on a node") || !strings.Contains(fault.As(err).Remedy, "bring that node back") {
		t.Errorf("its node is away: %v", err)
	}
	t.Log(err)
	// What says that a disk cannot be mounted says, too, that it is attached to another node.
	o := options(t, c)
	o.StorageClass = "held-" + newNamespace()
	clustertest.Apply(t, c, `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"`+o.StorageClass+`"},"spec":{"storageClassName":"`+o.StorageClass+`","capacity":{"storage":"1Gi"},
"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/held/elsewhere","type":"Directory"}}}`)
	t.Cleanup(func() {
		if out, err := c.Kubectl(context.Background(), "delete", "pv", o.StorageClass, "--wait=false").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	held := serve(t, c, image, o)
	held.SetStartPatience(8 * time.Second)
	held.refused(fault.Unavailable, "FailedMount", "/held/elsewhere is not a directory", "describe pod")
}
