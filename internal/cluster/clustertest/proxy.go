// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sandpit.dev/internal/cluster"
)

// proxyPath is the path below which a proxy has the API, as those of several clusters have.
const proxyPath = "/clusters/test"

// Proxy stands before a cluster's API server, notes what it is asked, and answers in its place where it is told to.
type Proxy struct {
	Kubeconfig string // path of one that leads to it

	server *httptest.Server

	mu    sync.Mutex
	asked []string
	first func(http.ResponseWriter, *http.Request) bool
}

// NewProxy returns one, which is there until the test's end. All who ask it are the administrator.
func NewProxy(t testing.TB, c *cluster.Cluster) *Proxy {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{}
	reverse := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	p.server = httptest.NewServer(http.StripPrefix(proxyPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		what := r.Method + " " + r.URL.Path
		if r.URL.Query().Get("watch") != "" {
			what = "WATCH " + r.URL.Path
		}
		p.asked = append(p.asked, what)
		first := p.first
		p.mu.Unlock()
		if first == nil || !first(w, r) {
			reverse.ServeHTTP(w, r)
		}
	})))
	t.Cleanup(p.server.Close)
	p.Kubeconfig = WriteKubeconfig(t, map[string]any{"server": p.server.URL + proxyPath}, map[string]any{})
	return p
}

// First has f see each request first, which reports whether it answered; nil: nobody does.
func (p *Proxy) First(f func(http.ResponseWriter, *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = f
}

// HangUp ends all connections to it.
func (p *Proxy) HangUp() { p.server.CloseClientConnections() }

// Asked returns what was asked since it was called before: the method, or WATCH, and the path.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = nil
	return asked
}

// WriteKubeconfig writes one for a cluster and a user, as kubeconfigs have them, and returns its path.
func WriteKubeconfig(t testing.TB, to, user map[string]any) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": to}}, "users": []any{map[string]any{"name": "test", "user": user}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": "test"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Account makes an account of a namespace with rights there, RESOURCE/SUBRESOURCE=VERB,VERB… each, and returns the path of its kubeconfig.
func Account(t testing.TB, c *cluster.Cluster, space string, rights ...string) string {
	t.Helper()
	Kubectl(t, c, "-n", space, "create", "serviceaccount", "server")
	for n, r := range rights {
		resource, verbs, _ := strings.Cut(r, "=")
		name := "right-" + string(rune('a'+n))
		Kubectl(t, c, "-n", space, "create", "role", name, "--resource="+resource, "--verb="+verbs)
		Kubectl(t, c, "-n", space, "create", "rolebinding", name, "--role="+name, "--serviceaccount="+space+":server")
	}
	token := Kubectl(t, c, "-n", space, "create", "token", "server")
	return WriteKubeconfig(t, map[string]any{"server": "https://" + cluster.Address + ":6443", "certificate-authority": filepath.Join(filepath.Dir(c.Kubeconfig), "ca.crt")}, map[string]any{"token": token})
}

// Kubectl runs kubectl as the administrator, and returns what it says.
func Kubectl(t testing.TB, c *cluster.Cluster, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Apply has the cluster take objects, in YAML or JSON.
func Apply(t testing.TB, c *cluster.Cluster, objects string) {
	t.Helper()
	cmd := c.Kubectl(t.Context(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(objects)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v: %s", err, out)
	}
}
