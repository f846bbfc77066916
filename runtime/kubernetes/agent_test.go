// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"os"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/agent/agenttest"
	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/kept"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes"
	"sandpit.dev/sandbox"
)

// agentPasses runs the suite of agents, but for the groups in without, against those of pods.
func agentPasses(t *testing.T, s *server, without ...string) {
	agenttest.Run(t, func(t *testing.T) *agent.Client {
		spec := s.spec()
		spec.Limits = sandbox.Limits{CPU: 2, MemoryMB: 1024, DiskMB: 1024}
		i, err := s.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := i.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return agent.NewClient(i.Dial)
	}, agenttest.Options{HasRoot: true, IsPID1: true, Reaps: !kept.Works(), HasGroups: fork.HasKeepers, OwnRoot: true, Unprivileged: true, Threads: kubernetes.AgentThreads}, without...)
}

// agentInShort runs the groups that look at what is another way in a pod that keeps its root: what its filter and its root take part in.
func agentInShort(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	agentPasses(t, serve(t, c, image, withUsers(t, c)),
		"Process", "Held", "Stdin", "Output", "Bounds", "Attach", "Rolling", "Lossless", "Wait", "Input", "Suspend", "Masked", "Init", "Files", "Archive", "Search", "Attributes", "Replace", "Outcomes", "Versions", "Ports", "Hostile")
}

// The agent of a pod passes all of its suite.
func TestSoakAgent(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to run all of the agent's suite in pods")
	}
	c, image := ready(t)
	t.Run("Plain", func(t *testing.T) { agentPasses(t, serve(t, c, image, options(t, c))) })
	t.Run("WithItsRoot", func(t *testing.T) { agentPasses(t, serve(t, c, image, withUsers(t, c))) })
}
