// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"testing"
	"time"

	"sandpit.dev/internal/cluster"
)

// AddNode adds a node, which goes with the test.
func AddNode(t testing.TB, c *cluster.Cluster) *cluster.Added {
	t.Helper()
	n, err := c.AddNode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Errorf("close %s: %v", n.Name, err)
		}
	})
	return n
}

// Answers waits until the API server answers.
func Answers(t testing.TB, c *cluster.Cluster) {
	t.Helper()
	for {
		out, err := c.Kubectl(t.Context(), "get", "--raw", "/readyz").CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the API server does not answer: %s", out)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
