// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package chart tests the Helm chart: what it renders, and a server that Helm installs on a real cluster.
package chart

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/internal/programs"
)

func TestMain(m *testing.M) { os.Exit(clustertest.MainWithServices(m)) }

const chart = "../../deploy/kubernetes/chart"

// helm returns a command of Helm's, with nothing of the user's.
func helm(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what has to be built")
	}
	kit, err := cluster.FindHelm(t.Context(), &programs.Finder{Cache: programs.UserCache(), Scratch: t.TempDir(), Fetch: true})
	if err != nil {
		t.Fatal(err)
	}
	cmd := kit.Command(t.Context(), "helm", args...)
	home := t.TempDir()
	cmd.Env = append(cmd.Env, "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG="+home+"/none")
	return cmd
}

// render returns what the chart makes of values, each NAME=VALUE.
func render(t *testing.T, values ...string) (string, error) {
	t.Helper()
	args := []string{"template", "sandpit", chart, "--namespace", "sandpit"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	var said bytes.Buffer
	cmd := helm(t, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return said.String(), err
	}
	return string(out), nil
}

func mustRender(t *testing.T, values ...string) string {
	t.Helper()
	out, err := render(t, values...)
	if err != nil {
		t.Fatalf("helm template %v: %v\n%s", values, err, out)
	}
	return out
}

// section returns what a text has between two others.
func section(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}
