// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/runtimetest"
)

// lacks are the features that no pod has.
func lacks() []runtime.Feature {
	return []runtime.Feature{
		runtime.Isolation, runtime.LimitSockets, runtime.LimitPids, runtime.LimitDisk, runtime.Sudo, runtime.Pause, runtime.CheapSnapshots,
	}
}

// groups are those of the suite.
func groups() []string {
	return []string{
		"Probe", "Lifecycle", "Restart", "Limits", "Pause", "Resize", "Meter", "Snapshots", "Volumes", "Network", "Changes", "Watches", "Users", "Accounts", "Sudo", "Told",
		"Isolation", "Neighbours", "Concurrency",
	}
}

// conformsWithRoots runs groups of the suite with pods that keep their roots, and the named tests of isolation: those that hold there.
func conformsWithRoots(t *testing.T, c *cluster.Cluster, image runtime.Image, tried []string, only ...string) {
	without := slices.DeleteFunc(groups(), func(g string) bool { return slices.Contains(only, g) })
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		o := withUsers(t, c)
		other := otherwise()
		maps.Copy(other, otherwiseWithRoots())
		return runtimetest.Harness{
			Image: image,
			Open:  func(t *testing.T) runtime.Driver { return open(t, o) },
			Must:  []runtime.Feature{runtime.RootDisk, runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.Snapshots, runtime.Network},
			Lacks: lacks(), Disk: []string{"/workspace", "/home", "/artifacts"}, Sizes: true, Tried: tried, Otherwise: other,
		}
	}, without...)
}

// otherwiseWithRoots are the attempts that have other outcomes there than in other pods.
func otherwiseWithRoots() map[string]runtimetest.Otherwise {
	no := runtimetest.Otherwise{Want: "REFUSED ENOSYS", Why: "the agent's filter says of clone3, whose flags no filter sees, that there is none"}
	return map[string]runtimetest.Otherwise{
		"clone into a user namespace by the new call":                 no,
		"clone into a user namespace with all others by the new call": no,
		"clone into the other namespaces by the new call":             no,
		"choose the number of a process":                              no,
	}
}

// withRoots are the tests that show what the right to mount, which a pod had as it began, is not any more.
func withRoots(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	conformsWithRoots(t, c, image, []string{"Mounts", "Namespaces", "StoreOfTheLayers", "NothingOfTheOtherCanBeReached", "TheirIdsOnTheHostDiffer"}, "Isolation", "Neighbours")
}

// The whole suite holds for pods that keep their roots, but for the tests of isolation in which a pod differs.
func TestSoakRoots(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to run all of the suite with pods that keep their roots")
	}
	c, image := ready(t)
	conformsWithRoots(t, c, image, []string{
		"RacesWithTheAgent", "RacesWithTheHost", "Mounts", "StoreOfTheLayers", "OtherUser", "Namespaces", "Sockets", "NothingOfTheOtherCanBeReached", "TheirIdsOnTheHostDiffer", "CommandsRunAsTheSandboxUser",
	}, slices.DeleteFunc(groups(), func(g string) bool { return g == "Meter" })...)
}
