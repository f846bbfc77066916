// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestClustersAreRuntimesByTheirNames(t *testing.T) {
	for _, tt := range []struct{ file, runtimes, field string }{
		{"clusters: {gpu: {kubeconfig: /x, runtime_class: gvisor}, far: {kubeconfig: /y, node_selector: {pool: far}}}", "native far gpu", ""},
		{"runtimes: [gpu, native]\nclusters: {gpu: {kubeconfig: /x}, far: }", "gpu native", ""},
		{"kubernetes: {kubeconfig: /z}\nclusters: {gpu: }", "native kubernetes gpu", ""},
		{"clusters: {native: {kubeconfig: /x}}", "", "clusters"},
		{"clusters: {kubernetes: {kubeconfig: /x}}", "", "clusters"},
		{"clusters: {../up: {kubeconfig: /x}}", "", "clusters"},
		{"clusters: {gpu: {namespace: A}}", "", "clusters.gpu.namespace"},
		{"runtimes: [far]\nclusters: {gpu: }", "", "runtimes"},
	} {
		path := filepath.Join(t.TempDir(), "sandpit.yaml")
		if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		c := DefaultConfig()
		err := c.ReadFile(path)
		if err == nil {
			err = c.ReadEnv(func(string) string { return "" })
		}
		if err == nil {
			err = c.Check()
		}
		if tt.field != "" {
			if err == nil || !strings.HasPrefix(fault.As(err).Message, tt.field+": ") {
				t.Errorf("%s: %v", tt.file, err)
			}
			continue
		}
		var got []string
		dirs := map[string]bool{}
		for _, k := range c.Runtimes.wanted() {
			got = append(got, k.Name())
			dirs[place(k, "/data", "n").Dir] = true
		}
		if err != nil || strings.Join(got, " ") != tt.runtimes || len(dirs) != len(got) {
			t.Errorf("%s: %v, %v, %v", tt.file, got, dirs, err)
		}
	}
}
