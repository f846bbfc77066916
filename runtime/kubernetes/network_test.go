// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// steered brings a sandbox's traffic here, where each connection is told where it was meant to go.
func steered(t *testing.T, i runtime.Instance) runtime.Traffic {
	t.Helper()
	traffic, err := i.(runtime.Networker).Steer(t.Context())
	if err != nil {
		t.Fatalf("Steer: %v", err)
	}
	t.Cleanup(func() { _ = traffic.Close() })
	go func() {
		for {
			c, err := traffic.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = fmt.Fprintf(c, "to %s\n", c.LocalAddr())
				_ = c.Close()
			}()
		}
	}()
	return traffic
}

// connect prints what comes of connections to addresses: what is said there, and REACHED where nothing is.
const connect = `import concurrent.futures, socket, sys
def outcome(a):
    host, port = a.split(':')
    s = socket.socket(); s.settimeout(1)
    try: s.connect((host, int(port)))
    except OSError as e: return 'refused' if isinstance(e, ConnectionRefusedError) else 'nothing'
    try: return 'REACHED ' + s.makefile().readline().strip()
    except OSError: return 'REACHED'
with concurrent.futures.ThreadPoolExecutor(8) as all:
    for a, o in zip(sys.argv[1:], all.map(outcome, sys.argv[1:])): print(a, o)
`

// tries returns what comes of connections of a user's from inside.
func tries(t *testing.T, i runtime.Instance, user string, addresses ...string) []string {
	t.Helper()
	return strings.Split(run(t, i, user, "python3 -c \"$(cat <<'E'\n"+connect+"\nE\n)\" "+strings.Join(addresses, " ")), "\n")
}

// brought fails unless what a sandbox sends comes to a test by steered.
func brought(t *testing.T, i runtime.Instance) {
	t.Helper()
	for _, user := range []string{"", "root"} {
		if got := tries(t, i, user, "93.184.216.34:443", cluster.Address+":6443"); !slices.Equal(got, []string{"93.184.216.34:443 REACHED to 93.184.216.34:443", cluster.Address + ":6443 REACHED to " + cluster.Address + ":6443"}) {
			t.Errorf("as %q: %q", user, got)
		}
	}
}

// steps returns what ran in a pod with CAP_NET_ADMIN, and what else it has that may do so.
func steps(p corev1.Pod) (out []corev1.EphemeralContainer, others int) {
	may := func(c *corev1.SecurityContext) bool {
		return c == nil || c.Capabilities == nil || len(c.Capabilities.Drop) == 0 || slices.Contains(c.Capabilities.Add, "NET_ADMIN")
	}
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		if may(c.SecurityContext) {
			others++
		}
	}
	return p.Spec.EphemeralContainers, others
}

func podWithNetwork(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	i := s.create(s.spec())
	if p, _ := s.pod(i.Handle().ID); len(p.Spec.EphemeralContainers) > 0 {
		t.Errorf("before it has %+v", p.Spec.EphemeralContainers)
	}
	const sessions = 9 // a step's sockets are enough for one less
	for range sessions {
		traffic := steered(t, i)
		brought(t, i)
		if err := traffic.Close(); err != nil {
			t.Error(err)
		}
	}
	p, text := s.pod(i.Handle().ID)
	all, others := steps(p)
	if len(all) != 2 || others > 0 {
		t.Fatalf("it has %d steps, and %d other containers that may configure its network: %s", len(all), others, text)
	}
	for _, step := range all {
		got, err := json.Marshal(step.SecurityContext)
		if want := `{"capabilities":{"add":["NET_ADMIN"],"drop":["ALL"]},"privileged":false,"runAsUser":0,"runAsGroup":0,"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}`; err != nil || string(got) != want {
			t.Errorf("a step has %s, want %s", got, want)
		}
		if len(step.VolumeMounts) > 0 || step.TargetContainerName != "" || step.Stdin {
			t.Errorf("a step has more than it should: %+v", step)
		}
	}
	if p.Spec.ShareProcessNamespace != nil && *p.Spec.ShareProcessNamespace {
		t.Error("the containers share their processes")
	}
	run(t, i, "", "echo kept > file")
	spec := s.spec()
	spec.ID = i.Handle().ID
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := i.(runtime.Networker).Steer(t.Context()); !fault.Is(err, fault.State) {
		t.Errorf("Steer of one that is down: %v", err)
	}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	steered(t, i)
	brought(t, i)
}

// network returns a command that runs on the node in the network of a pod.
func (s *server) network(p corev1.Pod, shell string) {
	s.t.Helper()
	const script = `for d in /proc/[0-9]*; do
    if grep -qs "$1" $d/cgroup; then exec nsenter --net=$d/ns/net -- sh -ec "$2"; fi
done
echo no process of the pod $1; exit 1`
	uid := strings.ReplaceAll(string(p.UID), "-", "[-_]")
	if out, err := s.c.Command(s.t.Context(), "sh", "-c", script, "sh", uid, shell).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: %s", shell, err, out)
	}
}

// What a hole in the redirect lets through, the policy does not.
func withoutRedirect(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	one, other := s.create(s.spec()), s.create(s.spec())
	steered(t, one)
	brought(t, one)
	p, _ := s.pod(one.Handle().ID)
	q, _ := s.pod(other.Handle().ID)
	s.network(p, "nft delete table ip sandpit; nft delete table ip6 sandpit; ip route del local default table local; ip -6 route del local default table local")
	out := []string{cluster.Address + ":6443", cluster.Address + ":10250", "10.244.0.1:10250", "10.96.0.1:443", q.Status.PodIP + ":26500"}
	for _, user := range []string{"", "root"} {
		for _, got := range tries(t, one, user, out...) {
			if !strings.HasSuffix(got, " nothing") {
				t.Errorf("without the redirect, as %q: %s", user, got)
			}
		}
	}
	// It is the policy that keeps it in.
	clustertest.Kubectl(t, c, "-n", s.o.Space, "delete", "networkpolicy", "--all")
	for got := []string{""}; !strings.Contains(got[0], "REACHED"); got = tries(t, one, "", out[0]) {
		if t.Context().Err() != nil {
			t.Fatal("without the policy nothing gets out either")
		}
	}
}

// secretOfACommand is in the environment of a command, and in nothing that the cluster has.
const secretOfACommand = "a-v4lue-that-only-the-agent-is-told"

// secrets looks for secrets in all that the cluster has kept since it began. It comes behind the tests that use one.
func secrets(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	i := s.create(s.spec())
	steered(t, i)
	p, err := agent.NewClient(i.Dial).Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "echo $VALUE", Env: map[string]string{"VALUE": secretOfACommand}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	f, err := p.Next(t.Context())
	if err != nil || strings.TrimSpace(string(f.Data)) != secretOfACommand {
		t.Fatalf("the command says %q, %v", f.Data, err)
	}
	found := map[string]int{}
	words := []string{"sandbox-" + string(i.Handle().ID), secretOfACommand, "s3cr3t/value+of.the=suite"} // the last one is runtimetest's
	err = filepath.WalkDir(filepath.Join(filepath.Dir(filepath.Dir(c.Kubeconfig)), "etcd"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, w := range words {
			found[w] += strings.Count(string(b), w)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found[words[0]] == 0 || found[words[1]] > 0 || found[words[2]] > 0 {
		t.Errorf("etcd has %v", found)
	}
}

// policiesProven is of a cluster whose network keeps to policies, and does not for a while.
func policiesProven(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	o.ProveEvery = time.Hour
	s := serve(t, c, image, o)
	i := s.create(s.spec())
	steered(t, i)
	brought(t, i)
	says := func(s *server, want string) {
		t.Helper()
		caps, err := s.Probe(t.Context())
		if err != nil || caps[runtime.Isolation] == nil || !strings.Contains(caps[runtime.Isolation].Error(), want) {
			t.Errorf("Probe: %v, %v, want %q in it", caps[runtime.Isolation], err, want)
		}
	}
	says(s, "it is proven that the cluster's network keeps to its policies")
	if got := clustertest.Kubectl(t, c, "-n", o.Space, "get", "pods", "-o", "name"); got != "pod/sandbox-"+string(i.Handle().ID) {
		t.Errorf("there are %s", got)
	}

	// A policy of somebody else's keeps the pod in that has to get out.
	clustertest.Apply(t, c, `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"all","namespace":"`+o.Space+`"},"spec":{"podSelector":{},"policyTypes":["Egress"]}}`)
	o.Dir, o.Namespace = t.TempDir(), newNamespace()
	s = serve(t, c, image, o)
	refused := func(s *server, want string) {
		t.Helper()
		i := s.create(s.spec())
		if _, err := i.(runtime.Networker).Steer(t.Context()); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("Steer: %v, want %q in it", err, want)
		}
		if caps, err := s.Probe(t.Context()); err != nil || !fault.Is(caps[runtime.Network], fault.Unsupported) {
			t.Errorf("Probe: %v, %v", caps[runtime.Network], err)
		}
		says(s, want)
	}
	refused(s, "did not reach the API server either")
	clustertest.Kubectl(t, c, "-n", o.Space, "delete", "networkpolicy", "all")

	// What enforces policies stops.
	enforcer := enforcer(t, c)
	signal := func(ctx context.Context, name string) {
		if out, err := c.Command(ctx, "kill", "-"+name, enforcer).CombinedOutput(); err != nil {
			t.Errorf("kill -%s: %v: %s", name, err, out)
		}
	}
	signal(t.Context(), "STOP")
	t.Cleanup(func() { signal(context.Background(), "CONT") })
	o.Dir, o.Namespace = t.TempDir(), newNamespace()
	refused(serve(t, c, image, o), "does not keep to policies")
}

// enforcer returns the id, on the node, of the process that enforces policies.
func enforcer(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	const script = `for d in /proc/[0-9]*; do
    if tr '\0' ' ' <$d/cmdline 2>/dev/null | grep -q 'policies -kubeconfig'; then echo ${d#/proc/}; exit; fi
done
exit 1`
	out, err := c.Command(t.Context(), "sh", "-c", script).Output()
	if err != nil {
		t.Fatalf("no process enforces policies: %v", err)
	}
	return strings.TrimSpace(string(out))
}
