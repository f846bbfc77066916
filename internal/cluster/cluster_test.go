// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/internal/programs"
)

func TestMain(m *testing.M) { os.Exit(clustertest.MainWithServices(m)) }

// It runs first where nothing is built yet: see make peers.
func TestItsNodeRunsPods(t *testing.T) {
	c := clustertest.Get(t)
	out := clustertest.Kubectl(t, c, "get", "nodes", "-o", "wide")
	if !strings.Contains(out, " Ready ") || !strings.Contains(out, cluster.Version) {
		t.Fatal(out)
	}
	space := clustertest.Space(t, c)
	clustertest.Kubectl(t, c, "-n", space, "run", "one", "--image=localhost/pause:1")
	clustertest.Kubectl(t, c, "-n", space, "wait", "--for=condition=Ready", "pod/one", "--timeout=60s")
}

// So that the chart's tests find it.
func TestHelmIsBuilt(t *testing.T) {
	clustertest.Get(t)
	kit, err := cluster.FindHelm(t.Context(), &programs.Finder{Cache: programs.UserCache(), Scratch: t.TempDir(), Fetch: true})
	if err != nil {
		t.Fatal(err)
	}
	if version, err := kit.Version(t.Context(), "helm"); err != nil || !strings.Contains(version, "4.") {
		t.Errorf("it is %q, %v", version, err)
	}
}

func TestServicesHaveAddressesAndNames(t *testing.T) {
	c := clustertest.Get(t)
	names := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(cluster.Address, "53"))
	}}
	const name = "kubernetes.default.svc.cluster.local"
	found, err := names.LookupHost(t.Context(), name)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s is %v, %v", name, found, err)
	}
	if want := clustertest.Kubectl(t, c, "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"); found[0] != want {
		t.Errorf("%s is %s, and the service has %s", name, found[0], want)
	}
	admin, err := cluster.Administrator(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := admin.Get("https://" + found[0] + "/readyz")
	if err != nil {
		t.Fatalf("what the service leads to: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("what the service leads to says %s", answer.Status)
	}
}

// What the kubelet would set on the whole machine it finds set, in files of its own.
func TestTheHostsSettingsStayAsTheyAre(t *testing.T) {
	c := clustertest.Get(t)
	const name = "kernel/panic_on_oops"
	host, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		t.Fatal(err)
	}
	its, err := c.Command(t.Context(), "cat", "/proc/sys/"+name).Output()
	if err != nil {
		t.Fatal(err)
	}
	if file, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(c.Kubeconfig)), "sysctl", filepath.Base(name))); err != nil || string(file) != string(its) {
		t.Errorf("the node sees %q, and not its own file %q, %v", its, file, err)
	}
	if again, err := os.ReadFile("/proc/sys/" + name); err != nil || string(again) != string(host) {
		t.Errorf("the host's was %q and is %q, %v", host, again, err)
	}
}

// A node that is added runs pods, and one that died can be closed.
func TestASecondNode(t *testing.T) {
	c := clustertest.Get(t)
	n := clustertest.AddNode(t, c, cluster.NodeOptions{Lease: clustertest.ShortLease})
	space := clustertest.Space(t, c)
	clustertest.Kubectl(t, c, "-n", space, "run", "there", "--image=localhost/pause:1", `--overrides={"spec":{"nodeName":"`+n.Name+`"}}`)
	clustertest.Kubectl(t, c, "-n", space, "wait", "--for=condition=Ready", "pod/there", "--timeout=60s")
	clustertest.Kubectl(t, c, "-n", space, "logs", "there") // the API server asks the other node's kubelet
	if err := n.Die(); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := clustertest.Kubectl(t, c, "get", "nodes", "-o", "name"); out != "node/"+cluster.Node {
		t.Errorf("the cluster has %s", out)
	}
}

// Components that are killed come back, and what they kept with them.
func TestComponentsThatAreKilledComeBack(t *testing.T) {
	c := clustertest.Get(t)
	space := clustertest.Space(t, c)
	clustertest.Kubectl(t, c, "-n", space, "run", "before", "--image=localhost/pause:1")
	clustertest.Kubectl(t, c, "-n", space, "wait", "--for=condition=Ready", "pod/before", "--timeout=60s")
	for _, component := range []string{cluster.Containerd, cluster.Kubelet, cluster.Controllers, cluster.Scheduler, cluster.Etcd, cluster.APIServer} {
		if err := c.Kill(t.Context(), component); err != nil {
			t.Fatalf("%s: %v", component, err)
		}
	}
	clustertest.Answers(t, c)
	clustertest.Kubectl(t, c, "-n", space, "run", "after", "--image=localhost/pause:1")
	clustertest.Kubectl(t, c, "-n", space, "wait", "--for=condition=Ready", "pod/before", "pod/after", "--timeout=90s")
	if err := c.Hold(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Kubectl(t.Context(), "get", "--raw", "/readyz").CombinedOutput(); err == nil {
		t.Errorf("it answers while it is held: %s", out)
	}
	if err := c.Release(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	clustertest.Answers(t, c)
}
