// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"sandpit.dev/internal/cluster/clustertest"
)

var update = flag.Bool("update", false, "write deploy/kubernetes/sandpit.yaml anew")

// plainHead stands above the plain manifests.
const plainHead = `# The server without Helm: what the chart makes of its defaults, for the namespace sandpit. Put a registry of yours in the place of the one below:
#
#   kubectl create namespace sandpit
#   sed s#registry.example/sandpit#YOURS# deploy/kubernetes/sandpit.yaml | kubectl apply -f -
#   kubectl -n sandpit exec deploy/sandpit -- sandpit run -c 'echo from $(hostname)'
#
# go test ./test/chart -run TestThePlainManifests -update writes this file.
`

// The server makes its own first token there, since a file that all have has no secrets.
func TestThePlainManifestsAreTheChartsOwn(t *testing.T) {
	const path = "../../deploy/kubernetes/sandpit.yaml"
	want := plainHead + mustRender(t, "registry=registry.example/sandpit", "adminToken.create=false")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // it is part of the sources
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the file is another than the chart makes it; write it anew with -update:\n%s", diff)
	}
	t.Run("TheClusterTakesThem", func(t *testing.T) {
		c := clustertest.Get(t)
		file, err := filepath.Abs(path) // kubectl runs in another namespace of mounts, at its top
		if err != nil {
			t.Fatal(err)
		}
		clustertest.Kubectl(t, c, "create", "namespace", "sandpit")
		t.Cleanup(func() {
			if out, err := c.Kubectl(context.Background(), "delete", "namespace", "sandpit", "--wait=false").CombinedOutput(); err != nil {
				t.Errorf("delete a namespace: %v\n%s", err, out)
			}
		})
		clustertest.Kubectl(t, c, "apply", "--dry-run=server", "--validate=strict", "-f", file)
	})
}

// object is as much of one as tests look at.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace     string
		Annotations, Labels map[string]string
	}
	Rules []rule
	Data  map[string]string
	Spec  struct {
		MaxUnavailable *int `yaml:"maxUnavailable"`
		Template       struct {
			Metadata struct{ Annotations map[string]string }
			Spec     map[string]any
		}
	}
}

type rule struct {
	Groups    []string `yaml:"apiGroups"`
	Resources []string
	Verbs     []string
	Named     []string `yaml:"resourceNames"`
}

func objects(t *testing.T, text string) (out []object) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		out = append(out, o)
	}
}

// roles are the rules of all roles, by kind and namespace.
func roles(all []object) map[string][]rule {
	out := map[string][]rule{}
	for _, o := range all {
		if o.Kind == "Role" || o.Kind == "ClusterRole" {
			out[o.Kind+" "+o.Metadata.Namespace] = o.Rules
		}
	}
	return out
}

func TestTheServerHasTheRightsThatTheDocsSay(t *testing.T) {
	b, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	var said []string // the blocks of the section
	for n, block := range strings.Split(section(string(b), "\n## The server's rights\n", "\n## "), "```") {
		if n%2 == 1 {
			said = append(said, strings.TrimPrefix(block, "yaml\n"))
		}
	}
	want := roles(objects(t, strings.Join(said, "---\n")))
	got := roles(objects(t, mustRender(t, "sandboxes.reach=forward")))
	// The docs name no namespace for where the sandboxes are.
	if rules, ok := want["Role "]; ok {
		delete(want, "Role ")
		want["Role sandpit"] = rules
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("docs/kubernetes.md says (-), and the chart gives (+):\n%s", diff)
	}
	if strings.Contains(mustRender(t), "portforward") {
		t.Error("it may forward ports, and reaches agents without")
	}
	for where, rules := range got {
		for _, r := range rules {
			if slices.Contains(append(append(r.Groups, r.Resources...), r.Verbs...), "*") || slices.Contains(r.Resources, "secrets") || slices.Contains(r.Resources, "pods/exec") {
				t.Errorf("%s gives %+v", where, r)
			}
		}
	}
}

func TestValuesThatAreWrongAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ value, says string }{
		"Reach":         {"sandboxes.reach=sideways", "/sandboxes/reach"},
		"Registry":      {"registry=no-path", "/registry"},
		"Overcommit":    {"sandboxes.overcommit=0", "/sandboxes/overcommit"},
		"Misspelt":      {"persistance.size=1Gi", "persistance"},
		"Size":          {"persistence.size=much", "/persistence/size"},
		"Level":         {"sandboxes.podSecurity=restricted", "/sandboxes/podSecurity"},
		"NoNameOfHosts": {"ingress.enabled=true", "ingress.host"},
		"Digest":        {"image.digest=latest", "/image/digest"},
		"MoreReach":     {"sandboxes.more.reach=forward", "/sandboxes/more"},
		"ConfigListen":  {"config.listen=:9090", "/config"},
		"ConfigSpace":   {"config.kubernetes.namespace=elsewhere", "/config/kubernetes"},
		"OneNamespace":  {"sandboxes.createNamespace=true", "sandboxes.namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := render(t, c.value); err == nil || !strings.Contains(out, c.says) {
				t.Errorf("%s: %v\n%s", c.value, err, out)
			}
		})
	}
}

// config returns the server's file.
func config(t *testing.T, text string) map[string]any {
	t.Helper()
	for _, o := range objects(t, text) {
		if o.Kind == "ConfigMap" {
			var out map[string]any
			if err := yaml.Unmarshal([]byte(o.Data["sandpit.yaml"]), &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	t.Fatalf("there is no configuration in\n%s", text)
	return nil
}

func TestValuesReachTheServer(t *testing.T) {
	c := config(t, mustRender(t, "sandboxes.namespace=boxes", "sandboxes.runtimeClass=gvisor", "sandboxes.more.context=x", "sandboxes.pool=3", "metrics.scrape=true",
		"sandboxes.nodeSelector.pool=boxes", "config.pools[0].image=python", "config.pools[0].min=2", "config.kubernetes.overcommit=4", "ingress.enabled=true", "ingress.host=boxes.example"))
	k, _ := c["kubernetes"].(map[string]any)
	for key, want := range map[string]any{"namespace": "boxes", "runtime_class": "gvisor", "context": "x", "overcommit": 4, "kubeconfig": "in-cluster"} {
		if k[key] != want {
			t.Errorf("kubernetes.%s is %v, want %v", key, k[key], want)
		}
	}
	if diff := cmp.Diff(map[string]any{"pool": "boxes"}, k["node_selector"]); diff != "" {
		t.Errorf("the nodes of sandboxes:\n%s", diff)
	}
	if diff := cmp.Diff([]any{map[string]any{"image": "python", "min": 2}}, c["pools"]); diff != "" {
		t.Errorf("the configuration goes before the values of the chart's:\n%s", diff)
	}
	if hosts, _ := c["hosts"].([]any); !slices.Contains(hosts, any("boxes.example")) || !slices.Contains(hosts, any("sandpit.sandpit.svc")) {
		t.Errorf("it is known as %v", hosts)
	}
	if public, _ := c["public"].([]any); !slices.Contains(public, any("metrics")) {
		t.Errorf("without a token it serves %v", public)
	}
	if public, _ := config(t, mustRender(t))["public"].([]any); slices.Contains(public, any("metrics")) {
		t.Error("its metrics are for all, and nobody asked for that")
	}
}
