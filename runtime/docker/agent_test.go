// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"context"
	"os"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/agent/agenttest"
	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/kept"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/sandbox"
)

// agentPasses runs the suite of agents, but for the groups in without, against those of containers.
func agentPasses(t *testing.T, p *place, without ...string) {
	agenttest.Run(t, func(t *testing.T) *agent.Client {
		spec := p.spec()
		spec.Limits = sandbox.Limits{CPU: 2, MemoryMB: 1024, DiskMB: 1024, Pids: 1024}
		i, err := p.driver.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := i.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return agent.NewClient(i.Dial)
	}, agenttest.Options{HasRoot: true, IsPID1: true, Reaps: !kept.Works(), HasGroups: fork.HasKeepers, OwnRoot: true, Unprivileged: true, IPv4Only: true, Threads: docker.AgentThreads}, without...)
}

// agentInShort runs the groups that take some seconds, and look at what is another way in a container: signals and terminals of
// a process 1, and ports behind other users' processes.
func agentInShort(t *testing.T, p *place) {
	agentPasses(t, p, "Process", "Stdin", "Output", "Bounds", "Kill", "Attach", "Rolling", "Lossless", "Wait", "Input", "Masked", "Init", "Files", "Tree", "Archive", "Search", "Dial", "Hostile")
}

// The agent of a container passes all of its suite, by its socket and by a stream of the Engine's.
func TestSoakAgent(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to run all of the agent's suite in containers")
	}
	h := dockerdtest.New(t)
	t.Run("BySockets", func(t *testing.T) { agentPasses(t, newPlace(t, h)) })
	t.Run("ByStreams", func(t *testing.T) { agentPasses(t, streamPlace(t, h)) })
}
