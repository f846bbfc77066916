// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

func whatTheClusterRefuses(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	t.Run("NoNodeHasRoom", func(t *testing.T) {
		o := options(t, c)
		o.Overcommit = 0.001
		s := serve(t, c, image, o)
		spec := s.spec()
		spec.Limits.CPU = 64
		if _, err := s.Create(t.Context(), spec); !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "Insufficient cpu") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("NoImage", func(t *testing.T) {
		s := serve(t, c, runtime.Image{Name: "missing", Digest: "sha256:" + strings.Repeat("ab", 32)}, options(t, c))
		s.refused(fault.Unavailable, "Image", "kubernetes.registry")
	})
	t.Run("NoClass", func(t *testing.T) {
		o := options(t, c)
		o.StorageClass = "missing"
		s := serve(t, c, image, o)
		s.SetClaimPatience(time.Second)
		s.refused(fault.Unavailable, "storage_class")
	})
	t.Run("NoRuntimeClass", func(t *testing.T) {
		o := options(t, c)
		o.RuntimeClass = "missing"
		serve(t, c, image, o).refused(fault.Unavailable, `RuntimeClass "missing" not found`)
	})
	t.Run("Quota", func(t *testing.T) {
		o := options(t, c)
		clustertest.Kubectl(t, c, "-n", o.Space, "create", "quota", "small", "--hard=pods=1")
		s := serve(t, c, image, o)
		one := s.create(s.spec())
		if _, err := s.Create(t.Context(), s.spec()); !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "exceeded quota: small") {
			t.Errorf("got %v", err)
		}
		if run(t, one, "", "echo here") != "here" {
			t.Error("the first is gone")
		}
	})
	t.Run("PodSecurity", func(t *testing.T) {
		o := options(t, c)
		clustertest.Kubectl(t, c, "label", "namespace", o.Space, "pod-security.kubernetes.io/enforce=restricted")
		serve(t, c, image, o).refused(fault.Unsupported, `violates PodSecurity "restricted`)
		clustertest.Kubectl(t, c, "label", "--overwrite", "namespace", o.Space, "pod-security.kubernetes.io/enforce=baseline")
		o.Dir, o.Namespace = t.TempDir(), newNamespace()
		s := serve(t, c, image, o)
		i := s.create(s.spec())
		if run(t, i, "", "echo admitted") != "admitted" {
			t.Error("baseline does not admit it")
		}
		if _, err := i.(runtime.Networker).Steer(t.Context()); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), `violates PodSecurity "baseline`) {
			t.Errorf("Steer: %v", err)
		}
		if caps, err := s.Probe(t.Context()); err != nil || caps[runtime.KillTree] != nil || !fault.Is(caps[runtime.Network], fault.Unsupported) || !strings.Contains(caps[runtime.Network].Error(), "NET_ADMIN") {
			t.Errorf("Probe: %v, %v", caps[runtime.Network], err)
		}
		if run(t, i, "", "echo still there") != "still there" {
			t.Error("it does not answer any more")
		}
	})
	t.Run("NoNamespace", func(t *testing.T) {
		o := options(t, c)
		o.Space = "missing"
		serve(t, c, image, o).refused(fault.Unavailable, `"missing" not found`, "kubectl create namespace")
	})
	t.Run("ANamespaceThatIsBeingDeleted", func(t *testing.T) {
		o := options(t, c)
		o.Space = "leaving-" + newNamespace()
		clustertest.Kubectl(t, c, "create", "namespace", o.Space)
		clustertest.Apply(t, c, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"stays","namespace":"`+o.Space+`","finalizers":["sandpit.dev/test"]}}`)
		clustertest.Kubectl(t, c, "delete", "namespace", o.Space, "--wait=false")
		serve(t, c, image, o).refused(fault.Unavailable, "being terminated", "the namespace is being deleted")
		clustertest.Kubectl(t, c, "-n", o.Space, "patch", "configmap", "stays", "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	})
	t.Run("AnAPIServerThatThrottles", func(t *testing.T) {
		p := clustertest.NewProxy(t, c)
		o := options(t, c)
		o.API.Kubeconfig = p.Kubeconfig
		s := serve(t, c, image, o)
		var busy atomic.Bool
		busy.Store(true)
		p.First(func(w http.ResponseWriter, r *http.Request) bool {
			if !busy.Load() || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/pods") {
				return false
			}
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"kind":"Status","code":429,"reason":"TooManyRequests","message":"too many requests, please try again later"}`))
			return true
		})
		s.refused(fault.Unavailable, "too many requests", "limits how much it is asked")
		busy.Store(false)
		if run(t, s.create(s.spec()), "", "echo made") != "made" {
			t.Error("nothing is made then")
		}
	})
	t.Run("NoRights", func(t *testing.T) {
		o := options(t, c)
		all := []string{"pods=create,get,list,watch,delete", "persistentvolumeclaims=create,get,list,delete", "networkpolicies.networking.k8s.io=create,patch", "pods/log=get", "pods/resize=patch"}
		o.API = kubeapi.Environment{Kubeconfig: clustertest.Account(t, c, o.Space, all[:4]...)}
		s := serve(t, c, image, o)
		caps, err := s.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if why := caps[runtime.KillTree]; why == nil || !strings.Contains(why.Error(), "may not, in the namespace "+o.Space+": patch pods/resize") {
			t.Errorf("it may not resize, and says %v", why)
		}
		clustertest.Kubectl(t, c, "-n", o.Space, "create", "role", "more", "--resource=pods/resize", "--verb=patch")
		clustertest.Kubectl(t, c, "-n", o.Space, "create", "rolebinding", "more", "--role=more", "--serviceaccount="+o.Space+":server")
		if caps, err = s.Probe(t.Context()); err != nil || caps[runtime.KillTree] != nil {
			t.Errorf("with all rights: %v, %v", caps[runtime.KillTree], err)
		}
		if why := caps[runtime.Isolation]; why == nil || !strings.Contains(why.Error(), "kube-node-lease: get leases, list leases, watch leases") {
			t.Errorf("it may not watch the leases of nodes, and says %v", why)
		}
		if why := caps[runtime.Network]; !fault.Is(why, fault.Unsupported) || !strings.Contains(why.Error(), "patch pods/ephemeralcontainers") {
			t.Errorf("it may not change pods, and says %v", why)
		}
		if run(t, s.create(s.spec()), "", "echo enough") != "enough" {
			t.Error("these rights are not enough")
		}
		clustertest.Kubectl(t, c, "-n", o.Space, "create", "role", "network", "--resource=pods/ephemeralcontainers", "--verb=patch")
		clustertest.Kubectl(t, c, "-n", o.Space, "create", "rolebinding", "network", "--role=network", "--serviceaccount="+o.Space+":server")
		if caps, err = s.Probe(t.Context()); err != nil || caps[runtime.Network] != nil {
			t.Errorf("with that, too: %v, %v", caps[runtime.Network], err)
		}
		i := s.create(s.spec())
		steered(t, i)
		brought(t, i)
		clustertest.Kubectl(t, c, "-n", o.Space, "delete", "rolebinding", "right-a")
		if _, err := s.Create(t.Context(), s.spec()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "pods is forbidden") || !strings.Contains(fault.As(err).Remedy, "role") {
			t.Errorf("without the right to make pods: %v", err)
		}
		clustertest.Kubectl(t, c, "-n", o.Space, "create", "rolebinding", "again", "--role=right-a", "--serviceaccount="+o.Space+":server")
	})
}

func inOtherHands(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	spec := s.spec()
	i := s.create(spec)
	run(t, i, "", "echo kept > file")
	clustertest.Kubectl(t, c, "-n", s.o.Space, "delete", "pod", "sandbox-"+string(spec.ID), "--grace-period=0", "--force")
	e, err := i.Wait(t.Context())
	if err != nil || e.Cause != sandbox.CauseHost || !strings.Contains(e.Detail, "deleted") {
		t.Errorf("deleted by hand: %+v, %v", e, err)
	}
	if _, err := i.Dial(t.Context()); !fault.Is(err, fault.State) {
		t.Errorf("Dial: %v", err)
	}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cat file"); got != "kept" {
		t.Errorf("the disk has %q", got)
	}
	clustertest.Kubectl(t, c, "-n", s.o.Space, "exec", "sandbox-"+string(spec.ID), "--", "/bin/sh", "-c", "kill -9 1; kill -9 -1; true") // neither the agent nor what is not the shell's
	if got := run(t, i, "", "cat file"); got != "kept" {
		t.Errorf("after an exec by hand it answers %q", got)
	}
	clustertest.Kubectl(t, c, "-n", s.o.Space, "label", "pod", "sandbox-"+string(spec.ID), "sandpit.dev/server-")
	if e, err := i.Wait(t.Context()); err != nil || e.Cause != sandbox.CauseHost {
		t.Errorf("without its label: %+v, %v", e, err)
	}
	if err := i.Start(t.Context(), spec); !fault.Is(err, fault.Conflict) {
		t.Errorf("Start beside a pod without the label: %v", err)
	}
	clustertest.Kubectl(t, c, "-n", s.o.Space, "delete", "pod", "sandbox-"+string(spec.ID))
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cat file"); got != "kept" {
		t.Errorf("at last it has %q", got)
	}
}

// A watch that expires, and an API server that is away for a while, lose nothing.
func brokenWatches(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	p := clustertest.NewProxy(t, c)
	o := options(t, c)
	o.API.Kubeconfig = p.Kubeconfig
	var away atomic.Bool
	var expired atomic.Int32
	p.First(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case away.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		case r.URL.Query().Get("watch") != "" && expired.Add(1) <= 3:
			_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}` + "\n"))
			return true
		}
		return false
	})
	s := serve(t, c, image, o)
	spec := s.spec()
	i := s.create(spec)
	if expired.Load() <= 3 {
		t.Errorf("a watch was begun %d times", expired.Load())
	}
	away.Store(true)
	if got := run(t, i, "", "echo without it"); got != "without it" {
		t.Errorf("while the API server is away it answers %q", got)
	}
	if _, err := s.Create(t.Context(), s.spec()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Create while it is away: %v", err)
	}
	away.Store(false)
	clustertest.Kubectl(t, c, "-n", s.o.Space, "delete", "pod", "sandbox-"+string(spec.ID), "--grace-period=0", "--force")
	if e, err := i.Wait(t.Context()); err != nil || e.Cause != sandbox.CauseHost {
		t.Errorf("deleted by hand: %+v, %v", e, err)
	}
}

// What is asked of the API server costs all its users: a call has none that can do without.
func requests(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	p := clustertest.NewProxy(t, c)
	o := options(t, c)
	o.API.Kubeconfig = p.Kubeconfig
	watched := make(chan struct{})
	begun := sync.OnceFunc(func() { close(watched) })
	p.First(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			begun()
		}
		return false
	})
	s := serve(t, c, image, o)
	spec := s.spec()
	select {
	case <-watched:
	case <-t.Context().Done():
		t.Fatal("no watch was begun")
	}
	p.Asked()
	leases := 0
	expect := func(what string, want ...string) {
		t.Helper()
		got := slices.DeleteFunc(p.Asked(), func(asked string) bool {
			if strings.HasSuffix(asked, "/namespaces/kube-node-lease/leases") { // of nodes, while sandboxes are up
				leases++
				return true
			}
			return false
		})
		for n := range got {
			got[n] = strings.ReplaceAll(got[n], "/api/v1/namespaces/"+s.o.Space+"/", "")
			got[n] = strings.ReplaceAll(got[n], string(spec.ID), "ID")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s asks %q, want %q", what, got, want)
		}
	}
	i := s.create(spec)
	expect("Create", "POST persistentvolumeclaims", "POST pods", "GET pods/sandbox-ID/log")
	run(t, i, "", "true")
	expect("a command")
	traffic := steered(t, i)
	expect("Steer", "GET pods/sandbox-ID", "PATCH pods/sandbox-ID/ephemeralcontainers")
	if err := traffic.Close(); err != nil {
		t.Error(err)
	}
	steered(t, i)
	expect("Steer again")
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	expect("Stop", "DELETE pods/sandbox-ID")
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	expect("Start", "POST pods", "GET pods/sandbox-ID/log")
	if err := i.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("Remove", "DELETE pods/sandbox-ID", "GET pods/sandbox-ID", "GET persistentvolumeclaims/sandbox-ID", "DELETE persistentvolumeclaims/sandbox-ID")
	if leases > 4 { // a list and a watch for each start
		t.Errorf("leases were asked for %d times", leases)
	}
}
