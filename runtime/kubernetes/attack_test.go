// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes"
	"sandpit.dev/sandbox"
)

// server is one of a test's own.
type server struct {
	*kubernetes.Driver
	t *testing.T
	c *cluster.Cluster
	o kubernetes.Options
	i runtime.Image
}

// serve opens a driver, and removes with the test what it made.
func serve(t *testing.T, c *cluster.Cluster, image runtime.Image, o kubernetes.Options) *server {
	t.Helper()
	s := &server{open(t, o), t, c, o, image}
	t.Cleanup(func() {
		list, err := s.List(context.Background())
		if err != nil && !fault.Is(err, fault.Unavailable) {
			t.Errorf("List: %v", err)
		}
		for _, h := range list {
			i, err := s.Open(context.Background(), h)
			if err == nil {
				err = i.Remove(context.Background())
			}
			if err != nil && !fault.Is(err, fault.NotFound) {
				t.Errorf("remove %s: %v", h.ID, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("close the driver: %v", err)
		}
	})
	return s
}

func (s *server) spec() runtime.Spec {
	return runtime.Spec{ID: sandbox.NewID(), Image: s.i, Hostname: "box", Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 256, Pids: 64}}
}

func (s *server) create(spec runtime.Spec) runtime.Instance {
	s.t.Helper()
	i, err := s.Create(s.t.Context(), spec)
	if err != nil {
		s.t.Fatalf("Create: %v", err)
	}
	return i
}

// refused fails unless a create is refused with the code, in words that contain each text, and leaves nothing.
func (s *server) refused(code fault.Code, texts ...string) {
	s.t.Helper()
	spec := s.spec()
	_, err := s.Create(s.t.Context(), spec)
	if !fault.Is(err, code) {
		s.t.Fatalf("Create: %v (code %q), want code %q", err, fault.Of(err), code)
	}
	s.t.Log(err)
	for _, text := range texts {
		if !strings.Contains(err.Error()+fault.As(err).Remedy, text) {
			s.t.Errorf("it says %q and %q, want %q in it", err, fault.As(err).Remedy, text)
		}
	}
	list, err := s.List(s.t.Context())
	if err != nil || len(list) > 0 {
		s.t.Errorf("it left %v, %v", list, err)
	}
}

// run runs shell text in a sandbox, and returns its output.
func run(t *testing.T, i runtime.Instance, user, shell string) string {
	t.Helper()
	c := agent.NewClient(i.Dial)
	p, err := c.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: shell, User: user, Merge: true})
	if err != nil {
		t.Fatalf("run %q: %v", shell, err)
	}
	defer func() { _ = p.Close() }()
	var out strings.Builder
	for {
		f, err := p.Next(t.Context())
		if err != nil {
			return strings.TrimSuffix(out.String(), "\n")
		}
		out.Write(f.Data)
	}
}

// pod returns a sandbox's pod as the cluster has it.
func (s *server) pod(id sandbox.ID) (p corev1.Pod, text string) {
	s.t.Helper()
	text = clustertest.Kubectl(s.t, s.c, "-n", s.o.Space, "get", "pod", "sandbox-"+string(id), "-o", "json")
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		s.t.Fatal(err)
	}
	return p, text
}

func noMoreThanItShould(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	i := s.create(s.spec())
	p, text := s.pod(i.Handle().ID)
	if p.Spec.HostNetwork || p.Spec.HostPID || p.Spec.HostIPC || *p.Spec.AutomountServiceAccountToken || *p.Spec.EnableServiceLinks || p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("the pod is %s", text)
	}
	for _, v := range p.Spec.Volumes {
		if v.Image == nil && v.PersistentVolumeClaim == nil {
			t.Errorf("it has the volume %+v", v)
		}
	}
	key, err := os.ReadFile(filepath.Join(s.o.Dir, "instances", string(i.Handle().ID), "key"))
	if err != nil {
		t.Fatal(err)
	}
	var kept struct{ Key string }
	if err := json.Unmarshal(key, &kept); err != nil || len(kept.Key) < 40 {
		t.Fatalf("the key that is kept: %q, %v", kept.Key, err)
	}
	if strings.Contains(text, kept.Key) || strings.Contains(clustertest.Kubectl(t, c, "-n", s.o.Space, "logs", p.Name), kept.Key) {
		t.Error("the cluster is told the agent's key")
	}
	for what, want := range map[string]string{
		"ls /var/run/secrets /run/secrets 2>/dev/null":             "",
		"grep -E 'Cap(Bnd|Eff|Prm|Amb)' /proc/self/status":         "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t00000000000004fb\nCapAmb:\t0000000000000000",
		"grep -E 'NoNewPrivs|Seccomp:' /proc/self/status":          "NoNewPrivs:\t1\nSeccomp:\t2",
		"env | grep -c -i kubernetes":                              "0",
		"cat /.sandpit/log/* 2>&1 | grep -v denied":                "",
		"test -w /.sandpit/agent && echo writable; id -u; pwd":     "1000\n/workspace",
		"cat /proc/1/environ /proc/1/mem 2>&1 | grep -vc denied":   "0",
		"grep -c . /etc/resolv.conf; grep nameserver /etc/resolv*": "1\nnameserver 127.0.0.1",
	} {
		if got := run(t, i, "", what); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	if got := run(t, i, "root", "grep CapEff /proc/self/status; touch /.sandpit/agent/x 2>&1"); !strings.Contains(got, "00000000000004fb") || !strings.Contains(got, "Read-only") {
		t.Errorf("root has %q", got)
	}
}

// A pod's network is the cluster's. Its policy leaves it nothing there, and nobody a way in.
func keptFromTheNetwork(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	one, other := s.create(s.spec()), s.create(s.spec())
	p, _ := s.pod(other.Handle().ID)
	for _, user := range []string{"", "root"} {
		lines := tries(t, one, user, cluster.Address+":6443", cluster.Address+":10250", "10.244.0.1:10250", "10.96.0.1:443", p.Status.PodIP+":26500")
		if len(lines) != 5 || slices.ContainsFunc(lines, func(l string) bool { return !strings.HasSuffix(l, " nothing") }) {
			t.Errorf("from inside, as %q: %q", user, lines)
		}
	}
	if run(t, other, "", "echo still here") != "still here" {
		t.Error("the other does not answer")
	}
}

func strangers(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	s := serve(t, c, image, o)
	theirs := s.spec()
	name := "sandbox-" + string(theirs.ID)
	clustertest.Apply(t, c, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"`+name+`","namespace":"`+o.Space+`"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Mi"}}}}`)
	if _, err := s.Create(t.Context(), theirs); !fault.Is(err, fault.Exists) {
		t.Errorf("Create over another's claim: %v", err)
	}
	if _, err := s.Open(t.Context(), runtime.Handle{ID: theirs.ID}); !fault.Is(err, fault.NotFound) {
		t.Errorf("Open of another's claim: %v", err)
	}
	// Another server's, in the same namespace.
	o.Dir, o.Namespace = t.TempDir(), newNamespace()
	other := serve(t, c, image, o)
	ours := other.create(other.spec())
	if _, err := s.Open(t.Context(), ours.Handle()); !fault.Is(err, fault.NotFound) {
		t.Errorf("Open of another server's: %v", err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("List: %v, %v", list, err)
	}
	// A pod that has the name of one of ours, once ours is stopped.
	if err := ours.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	clustertest.Kubectl(t, c, "-n", o.Space, "run", "sandbox-"+string(ours.Handle().ID), "--image=localhost/pause:1")
	spec := other.spec()
	spec.ID = ours.Handle().ID
	if err := ours.Start(t.Context(), spec); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.As(err).Remedy, "delete") {
		t.Errorf("Start beside a pod of its name: %v", err)
	}
	if err := ours.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if got := clustertest.Kubectl(t, c, "-n", o.Space, "get", "pod,pvc", "-o", "name"); !strings.Contains(got, "pod/sandbox-"+string(ours.Handle().ID)) || !strings.Contains(got, "claim/"+name) {
		t.Errorf("what is another's is touched: %s is there", got)
	}
}
