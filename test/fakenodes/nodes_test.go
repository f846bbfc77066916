// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package fakenodes_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/internal/cluster"
)

const (
	agentPort  = 26500           // see package kubernetes
	addresses  = "10.251.0.0/16" // of pods
	podsOfNode = 250
	renewEvery = 10 * time.Second // as kubelets do
)

// nodes are nodes of a cluster, and the agents of their pods.
type nodes struct {
	t    *testing.T
	api  *http.Client
	dir  string
	port int // of what answers as the kubelet of all

	names []string

	mu   sync.Mutex
	pods map[string]*pod // by name
	at   map[netip.Addr]*pod
	next netip.Addr
}

// newNodes makes nodes, until the test's end. No other node of the cluster takes pods any more.
func newNodes(t *testing.T, c *cluster.Cluster, count int) *nodes {
	t.Helper()
	api, err := cluster.Administrator(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	n := &nodes{t: t, api: api, dir: openDir(t), pods: map[string]*pod{}, at: map[netip.Addr]*pod{}, next: netip.MustParsePrefix(addresses).Addr()}
	if out, err := exec.CommandContext(t.Context(), "ip", "route", "add", "local", addresses, "dev", "lo", "src", cluster.Address).CombinedOutput(); err != nil {
		t.Fatalf("give the pods addresses: %v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	n.answerAsKubelet(ctx, &workers, filepath.Join(filepath.Dir(c.Kubeconfig)))
	n.answerAsAgents(ctx, &workers)
	for at := range count {
		name := fmt.Sprintf("fake-%d", at)
		n.names = append(n.names, name)
		n.must(http.MethodPost, "/api/v1/nodes", map[string]any{"metadata": map[string]any{"name": name}})
		n.must(http.MethodPatch, "/api/v1/nodes/"+name+"/status", map[string]any{"status": n.ready()})
		n.must(http.MethodPost, leases, n.lease(name))
	}
	n.must(http.MethodPatch, "/api/v1/nodes/"+cluster.Node, map[string]any{"spec": map[string]any{"unschedulable": true}})
	workers.Go(func() { n.renew(ctx) })
	workers.Go(func() { n.watch(ctx) })
	t.Cleanup(func() {
		cancel()
		workers.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, p := range n.pods {
			p.end()
		}
		api.CloseIdleConnections()
	})
	return n
}

// openDir makes a directory that the user of commands gets into.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandpit-fakenodes-")
	if err == nil {
		err = os.Chmod(dir, 0o711) //nolint:gosec // see above
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

func (n *nodes) lease(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")}}
}

// ready is the status of a node that takes pods.
func (n *nodes) ready() map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	room := map[string]string{"cpu": "4000", "memory": "4000Gi", "ephemeral-storage": "4000Gi", "pods": fmt.Sprint(podsOfNode)}
	return map[string]any{
		"capacity": room, "allocatable": room,
		"conditions":      []any{map[string]any{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now}},
		"addresses":       []any{map[string]any{"type": "InternalIP", "address": cluster.Address}},
		"daemonEndpoints": map[string]any{"kubeletEndpoint": map[string]any{"Port": n.port}},
		"nodeInfo":        map[string]any{"kubeletVersion": cluster.Version, "operatingSystem": "linux", "architecture": "amd64"},
	}
}

// renew has the nodes alive.
func (n *nodes) renew(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewEvery):
		}
		for _, name := range n.names {
			if err := n.ask(ctx, http.MethodPatch, leases+"/"+name, n.lease(name), nil); err != nil && ctx.Err() == nil {
				n.t.Errorf("renew the lease of %s: %v", name, err)
			}
		}
	}
}

// watch has pods run, and end.
func (n *nodes) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := n.follow(ctx)
		if ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			n.t.Errorf("watch pods: %v", err)
			return
		}
	}
}

func (n *nodes) follow(ctx context.Context) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cluster.URL+"/api/v1/pods?watch=1", nil)
	if err != nil {
		return err
	}
	resp, err := n.api.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers %s", resp.Status)
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for in := json.NewDecoder(resp.Body); ; {
		var e struct {
			Type   string
			Object corev1.Pod
		}
		if err := in.Decode(&e); err != nil {
			return err
		}
		p := &e.Object
		if !strings.HasPrefix(p.Spec.NodeName, "fake-") || e.Type == "ERROR" {
			continue
		}
		work, begun := n.heard(p, e.Type == "DELETED")
		if work == nil {
			continue
		}
		tasks.Go(func() {
			if err := work(ctx, begun); err != nil && ctx.Err() == nil {
				n.t.Errorf("the pod %s: %v", p.Name, err)
			}
		})
	}
}

// heard returns what is to be done about a pod; nil: nothing.
func (n *nodes) heard(p *corev1.Pod, gone bool) (work func(context.Context, *pod) error, of *pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	have := n.pods[p.Name]
	switch {
	case have != nil && have.uid == string(p.UID) && (gone || p.DeletionTimestamp != nil):
		delete(n.pods, p.Name)
		delete(n.at, have.address)
		return func(ctx context.Context, of *pod) error {
			of.end()
			if gone {
				return nil
			}
			err := n.ask(ctx, http.MethodDelete, "/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name+"?gracePeriodSeconds=0", map[string]any{"preconditions": map[string]any{"uid": p.UID}}, nil)
			if err != nil && (strings.Contains(err.Error(), "404") || strings.Contains(err.Error(), "409")) {
				return nil
			}
			return err
		}, have
	case gone || p.DeletionTimestamp != nil || have != nil && have.uid == string(p.UID):
		return nil, nil
	}
	n.next = n.next.Next()
	fresh := &pod{name: p.Name, uid: string(p.UID), address: n.next, begun: make(chan struct{})}
	n.pods[p.Name], n.at[n.next] = fresh, fresh
	return func(ctx context.Context, of *pod) error {
		status, err := of.begin(ctx, n.dir, p)
		if err != nil {
			return err
		}
		err = n.ask(ctx, http.MethodPatch, "/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name+"/status", map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status}, nil)
		if err != nil && (strings.Contains(err.Error(), "404") || strings.Contains(err.Error(), "409")) {
			return nil // it was deleted meanwhile
		}
		return err
	}, fresh
}

// ask sends a request to the API server.
func (n *nodes) ask(ctx context.Context, method, path string, body, into any) (err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, cluster.URL+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := n.api.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, said)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(said, into)
	}
	return err
}

func (n *nodes) must(method, path string, body any) {
	n.t.Helper()
	if err := n.ask(n.t.Context(), method, path, body, nil); err != nil {
		n.t.Fatal(err)
	}
}

// answerAsKubelet answers what the API server asks of the nodes: the logs of agents.
func (n *nodes) answerAsKubelet(ctx context.Context, workers *sync.WaitGroup, pki string) {
	n.t.Helper()
	own, err := tls.LoadX509KeyPair(filepath.Join(pki, "kubelet.crt"), filepath.Join(pki, "kubelet.key"))
	if err != nil {
		n.t.Fatal(err)
	}
	l, err := tls.Listen("tcp", cluster.Address+":0", &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12})
	if err != nil {
		n.t.Fatal(err)
	}
	n.port = l.Addr().(*net.TCPAddr).Port
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/") // "", containerLogs, NAMESPACE, POD, CONTAINER
		if len(parts) != 5 || parts[1] != "containerLogs" {
			http.NotFound(w, r)
			return
		}
		n.mu.Lock()
		p := n.pods[parts[3]]
		n.mu.Unlock()
		if p == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, p.log+"\n")
	})}
	workers.Go(func() { _ = s.Serve(l) })
	workers.Go(func() { <-ctx.Done(); _ = s.Close() })
}

// answerAsAgents takes connections at the addresses of all pods.
func (n *nodes) answerAsAgents(ctx context.Context, workers *sync.WaitGroup) {
	n.t.Helper()
	l, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", agentPort))
	if err != nil {
		n.t.Fatal(err)
	}
	workers.Go(func() { <-ctx.Done(); _ = l.Close() })
	workers.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			at, _ := netip.AddrFromSlice(nc.LocalAddr().(*net.TCPAddr).IP)
			n.mu.Lock()
			p := n.at[at.Unmap()]
			n.mu.Unlock()
			if p == nil || p.door == nil {
				_ = nc.Close()
				continue
			}
			workers.Go(func() { _ = p.door.Carry(p.running, nc) })
		}
	})
}
