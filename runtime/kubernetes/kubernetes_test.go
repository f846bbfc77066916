// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/agent/embedded"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/runtime/runtimetest"
)

// soak has the long form of the tests run, with a node that has gVisor.
var soak = os.Getenv("SANDPIT_SOAK") == "1"

func TestMain(m *testing.M) {
	if soak {
		os.Exit(clustertest.MainWithGVisor(m))
	}
	os.Exit(clustertest.Main(m))
}

// images is what references begin with on the test's node.
const images = "localhost/sandpit"

// ready gives the cluster's node the images that sandboxes are of.
func ready(t *testing.T) (*cluster.Cluster, runtime.Image) {
	t.Helper()
	c := clustertest.Get(t)
	return c, give(t, &c.Machine)
}

// give gives a node the images that sandboxes are of.
func give(t *testing.T, m *cluster.Machine) runtime.Image {
	t.Helper()
	program, err := embedded.Program()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	if err := m.Import(t.Context(), kubernetes.AgentReference(images, hex.EncodeToString(sum[:])), program, "sandpit-agent"); err != nil {
		t.Fatal(err)
	}
	img := imagetest.Python(t)
	if err := m.Lend(t.Context(), kubernetes.ImageReference(images, img.Digest), img.Root); err != nil {
		t.Fatal(err)
	}
	return runtime.Image{Name: img.Name, Digest: img.Digest, Root: img.Root}
}

// options are those of a server of its own.
func options(t *testing.T, c *cluster.Cluster) kubernetes.Options {
	t.Helper()
	return kubernetes.Options{
		Dir: t.TempDir(), Namespace: newNamespace(), API: kubeapi.Environment{Kubeconfig: c.Kubeconfig}, Space: clustertest.Space(t, c),
		Images: images, Direct: true, Overcommit: 100,
	}
}

// newNamespace is one of a server of its own.
func newNamespace() string { return strings.ToLower(rand.Text()[:12]) }

func open(t *testing.T, o kubernetes.Options) *kubernetes.Driver {
	t.Helper()
	var err error
	if o.Agent, err = embedded.Program(); err != nil {
		t.Fatal(err)
	}
	d, err := kubernetes.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("kubernetes.Open: %v", err)
	}
	return d
}

func TestDriver(t *testing.T) {
	c, image := ready(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, c *cluster.Cluster, image runtime.Image)
	}{
		{"APodHasNoMoreThanItShould", noMoreThanItShould},
		{"APodIsKeptFromTheNetwork", keptFromTheNetwork},
		{"StrangersAreNeitherShownNorTouched", strangers},
		{"WhatTheClusterRefuses", whatTheClusterRefuses},
		{"PodsInOtherHands", inOtherHands},
		{"BrokenWatches", brokenWatches},
		{"WhatIsAskedOfTheAPIServer", requests},
		{"APodWithANetwork", podWithNetwork},
		{"WithoutTheRedirect", withoutRedirect},
		{"ThatPoliciesAreKeptIsProven", policiesProven},
		{"ThroughTheAPIServer", forwards},
		{"WhereNodesMountNoImages", copies},
		{"UserNamespaces", userNamespaces},
		{"NodesThatAreChosen", placed},
		{"RootsThatAreKept", rootsKept},
		{"RootsInOtherHands", rootsInOtherHands},
		{"WhoKeepsNoRoot", noRoots},
		{"WhatAStopLoses", losses},
		{"WhatMayNotBeDoneWithRoots", withRoots},
		{"AgentsWithRoots", agentInShort},
		{"WhatTheAdmissionPolicyAdmits", admits},
		{"PodsThatAreGoneAndNobodyTells", untold},
		{"AnAPIServerThatAnswersFromThePast", fromThePast},
		{"TwoServersThatTakeOnePod", twoServers},
		{"ANodeThatIsDrained", drained},
		{"DisksThatAreHeldElsewhere", heldElsewhere},
		{"NodesThatAreLost", nodesLost},
		{"ANodeWhoseAgentsAnswer", agentsAnswer},
		{"SnapshotsThatWereLeftHalfDone", snapshotsHalfDone},
		{"WhatSnapshotsHold", whatSnapshotsHold},
		{"SnapshotsShareWhatTheyHave", snapshotsShare},
		{"VolumesAreClaims", volumesAreClaims},
		{"VolumesInKeptRoots", volumesInKeptRoots},
		{"BadVolumes", badVolumes},
		{"VolumesOfOneNode", volumesOfOneNode},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c, image) })
	}
	t.Run("Conformance", func(t *testing.T) {
		without := []string{"Meter"}
		if !soak { // the tests above have what is the driver's own of these, in fewer pods
			without = append(without, "Volumes", "Snapshots")
		}
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			o := options(t, c)
			return runtimetest.Harness{
				Image: image,
				Open:  func(t *testing.T) runtime.Driver { return open(t, o) },
				Must:  []runtime.Feature{runtime.LimitCPU, runtime.LimitMemory, runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.Resize, runtime.TrackChanges, runtime.WatchFiles, runtime.Snapshots, runtime.Volumes, runtime.VolumeParts, runtime.Network},
				Lacks: append(lacks(), runtime.RootDisk),
				Disk:  []string{"/workspace", "/home", "/artifacts"}, Sizes: true,
				Tried: []string{"CommandsRunAsTheSandboxUser", "Sockets"}, Otherwise: otherwise(),
			}
		}, without...)
	})
	if soak {
		t.Run("OnGVisor", func(t *testing.T) { onGVisor(t, c, image) })
	}
	t.Run("NoSecretIsInTheCluster", func(t *testing.T) { secrets(t, c, image) })
}

// otherwise are the attempts that have other outcomes in a pod than on the native runtime.
func otherwise() map[string]runtimetest.Otherwise {
	return map[string]runtimetest.Otherwise{
		"leave for another network":               {Want: "REFUSED EPERM or REFUSED ENOSYS", Why: "the nodes' filter says of clone3, whose flags no filter sees, that there is none"},
		"connect without a network":               {Want: "TimeoutError: timed out or OSError: [Errno 113] No route to host", Why: "the policy drops it on the way, and nobody says so; before it holds for a new pod, the node says that it has no way there"},
		"open pairs of sockets of other families": {Want: "REFUSED EPERM or REFUSED ENOTSUP or REFUSED EAFNOSUPPORT or REFUSED ENODEV", Why: "the filter leaves it to the kernel, which has pairs of unix alone"},
		"find another interface":                  {Want: "lo, eth0", Why: "the pod's, over which nothing is sent but answers to the server"},
		"choose an interface":                     {Want: "DONE", Why: "as an interface is chosen nothing is sent: WithoutTheRedirect and package tproxy try that"},
	}
}

// forwards is of a server outside of the cluster, and of an API server that is below a path of a proxy's.
func forwards(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	o.Direct = false
	o.API.Kubeconfig = clustertest.NewProxy(t, c).Kubeconfig
	s := serve(t, c, image, o)
	i := s.create(s.spec())
	if got := run(t, i, "", "head -c 50000000 /dev/zero | tee copy | sha256sum; stat -c %s copy"); !strings.HasSuffix(got, "\n50000000") {
		t.Errorf("got %q", got)
	}
	if n := len(run(t, i, "", "head -c 1000000 /dev/zero | tr '\\0' x")); n != 1000000 {
		t.Errorf("%d bytes came", n)
	}
	steered(t, i)
	brought(t, i)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := run(t, i, "", "sleep 0.1; echo many"); got != "many" {
				t.Errorf("beside others: %q", got)
			}
		})
	}
	all.Wait()
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// copies is of nodes that are too old to mount images.
func copies(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	s.SetMinor(33)
	i := s.create(s.spec())
	if p, _ := s.pod(i.Handle().ID); len(p.Spec.InitContainers) != 1 || p.Spec.InitContainers[0].SecurityContext.Capabilities.Add != nil {
		t.Errorf("it has %+v", p.Spec.InitContainers)
	}
	steered(t, i)
	brought(t, i)
	if got := run(t, i, "root", "echo with a copy; touch /.sandpit/agent/x 2>&1 | grep -o Read-only"); got != "with a copy\nRead-only" {
		t.Errorf("got %q", got)
	}
}

func userNamespaces(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	o.Users = true
	s := serve(t, c, image, o)
	spec := s.spec()
	i := s.create(spec)
	if got := run(t, i, "root", "awk '{print $1, ($2 > 65535), $3}' /proc/self/uid_map; id -u; echo mine > /root/x; stat -c %u /root/x /workspace"); got != "0 1 65536\n0\n0\n1000" {
		t.Errorf("got %q", got)
	}
	steered(t, i)
	brought(t, i)
	run(t, i, "", "echo kept > file")
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cat file; stat -c %u file"); got != "kept\n1000" {
		t.Errorf("after a stop: %q", got)
	}
}
