// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type compose struct {
	Services map[string]struct {
		Image       string
		Privileged  bool
		Environment map[string]string
		Volumes     []string
		Ports       []string
		CapDrop     []string `yaml:"cap_drop"`
		CapAdd      []string `yaml:"cap_add"`
		SecurityOpt []string `yaml:"security_opt"`
		ReadOnly    bool     `yaml:"read_only"`
		Tmpfs       []string
		NetworkMode string `yaml:"network_mode"`
		PID         string `yaml:"pid"`
		Networks    []string
		DependsOn   map[string]any `yaml:"depends_on"`
		Restart     string
		Healthcheck map[string]any
	}
	Name     string
	Volumes  map[string]struct{}
	Networks map[string]struct{}
}

func readCompose(t *testing.T) compose {
	t.Helper()
	f, err := os.Open("../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var c compose
	dec := yaml.NewDecoder(f)
	dec.KnownFields(true) // so that nothing is in it that the test does not look at
	if err := dec.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// composeRights are the options of docker run with the rights that the file gives to the server.
func composeRights(t *testing.T) (args []string) {
	t.Helper()
	s := readCompose(t).Services["server"]
	for _, c := range s.CapDrop {
		args = append(args, "--cap-drop", c)
	}
	for _, c := range s.CapAdd {
		args = append(args, "--cap-add", c)
	}
	for _, o := range s.SecurityOpt {
		args = append(args, "--security-opt", o)
	}
	for _, dir := range s.Tmpfs {
		args = append(args, "--tmpfs", dir)
	}
	if s.ReadOnly {
		args = append(args, "--read-only", "-v", "/var/lib/sandpit") // its data's volume is a nameless one here
	}
	return args
}

// The file with an Engine beside the server gives nothing of the host away.
func TestTheComposeFileGivesNothingAway(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		if s.Privileged != (name == "engine") {
			t.Errorf("%s is privileged: %v", name, s.Privileged)
		}
		if s.NetworkMode != "" || s.PID != "" {
			t.Errorf("%s has namespaces of the host", name)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[from]; !ok {
				t.Errorf("%s has %s of the host", name, v)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s is reached from elsewhere at %s", name, p)
			}
		}
	}
	engine, server := c.Services["engine"], c.Services["server"]
	if !slices.Equal(server.CapDrop, []string{"ALL"}) || !server.ReadOnly || !slices.Equal(server.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("the server has %v, %v", server.CapDrop, server.SecurityOpt)
	}
	if len(engine.Ports) > 0 || engine.Environment["DOCKER_TLS_CERTDIR"] == "" || server.Environment["DOCKER_TLS_VERIFY"] != "1" || !strings.HasPrefix(server.Environment["DOCKER_HOST"], "tcp://engine:") {
		t.Errorf("the way to the Engine is %v, %v", engine.Environment, server.Environment)
	}
	for _, network := range engine.Networks {
		if network != "engine" {
			t.Errorf("the Engine is in the network %s", network)
		}
	}
}
