// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"testing"
	"time"

	"sandpit.dev/internal/cluster"
)

// ShortLease is that of nodes which tests wait to be missed: they renew it every three seconds.
const ShortLease = 12 * time.Second

// AddNode adds a node, which goes with the test. It has a lease.
func AddNode(t testing.TB, c *cluster.Cluster, o cluster.NodeOptions) *cluster.Added {
	t.Helper()
	n, err := c.AddNode(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Errorf("close %s: %v", n.Name, err)
		}
	})
	Kubectl(t, c, "-n", "kube-node-lease", "wait", "--for=create", "lease/"+n.Name, "--timeout=60s")
	return n
}

// Answers waits until the API server answers.
func Answers(t testing.TB, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		out, err := c.Kubectl(ctx, "get", "--raw", "/readyz").CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the API server does not answer: %s", out)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
