// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
)

// elsewhere makes a directory in a place where this Engine has files of its own.
func (p *place) elsewhere() string {
	p.t.Helper()
	dir, err := os.MkdirTemp("/run", "sandpit-test-")
	p.must(err)
	p.t.Cleanup(func() { p.must(os.RemoveAll(dir)) })
	return dir
}

// Where the Engine does not see the server's files, agents are reached through it, without a setting: for its whole life, by the next
// server too, and also where the Engine has something else under the same name.
func filesElsewhere(t *testing.T, p *place) {
	dir := p.elsewhere()
	p.must(p.host.Engine().Do(func() error { return os.MkdirAll(filepath.Join(dir, "instances"), 0o755) }))
	d := open(t, p.host, dir, p.namespace)
	spec := p.spec()
	i, err := d.Create(t.Context(), spec)
	p.must(err)
	c, err := p.engine.InspectContainer(t.Context(), p.container(spec.ID))
	p.must(err)
	for _, m := range c.Mounts {
		if m.Type == "bind" {
			t.Errorf("a directory of the host is mounted: %s", m.Source)
		}
	}
	if got := p.run(i, agent.Command{Shell: "echo $((6*7)) >kept; cat kept"}); got != "42\n" {
		t.Errorf("a command said %q", got)
	}
	can, err := d.Probe(t.Context())
	p.must(err)
	for _, f := range []runtime.Feature{runtime.Snapshots, runtime.Network} { // through the agent
		if can[f] != nil {
			t.Errorf("%s: %v", f, can[f])
		}
	}
	traffic := p.steered(i)
	if got := p.run(i, agent.Command{Shell: ask}); got != "to 93.184.216.34:443\n" {
		t.Errorf("a connection was answered with %q", got)
	}
	p.must(traffic.Close())
	p.must(d.Close())

	d = open(t, p.host, dir, p.namespace)
	defer func() { p.must(d.Close()) }()
	found, err := d.Open(t.Context(), runtime.Handle{ID: spec.ID})
	p.must(err)
	if got := p.run(found, agent.Command{Shell: "cat kept"}); got != "42\n" {
		t.Errorf("with the next server a command said %q", got)
	}
	p.must(found.Remove(t.Context()))
	p.nothingLeft()
}

// A container finds what the server's own look at the Engine's process finds.
func containersSee(t *testing.T, p *place) {
	for _, test := range []struct {
		dir  string
		want bool
	}{{t.TempDir(), true}, {p.elsewhere(), false}} {
		path := filepath.Join(test.dir, "seen")
		p.must(os.WriteFile(path, []byte("1234567"), 0o600))
		if got, err := p.driver.ContainerSees(t.Context(), path, 7); got != test.want || err != nil {
			t.Errorf("%s is seen: %v, %v", path, got, err)
		}
		if got, err := p.driver.ContainerSees(t.Context(), path, 8); got || err != nil {
			t.Errorf("a file of another size than %s is seen: %v, %v", path, got, err)
		}
	}
	p.nothingLeft()
}

// What an Engine without images is tried with is gone afterwards.
func triedEmpty(t *testing.T, p *place) {
	images := func() []engineapi.ListedImage {
		list, err := p.engine.ListImages(t.Context())
		p.must(err)
		return list
	}
	if list := images(); len(list) > 0 {
		t.Fatalf("it has the images %v", list)
	}
	d := open(t, p.host, p.elsewhere(), p.namespace)
	defer func() { p.must(d.Close()) }()
	can, err := d.Probe(t.Context())
	p.must(err)
	if why := can[runtime.VolumeParts]; p.engine.MountsParts() != (why == nil) || why != nil && !strings.Contains(why.Error(), "behind the Engine") { // what the trial found
		t.Errorf("parts of volumes: %v", why)
	}
	if list := images(); len(list) > 0 {
		t.Errorf("left are the images %v", list)
	}
	p.nothingLeft()
}

// nothingLeft looks for containers of the server's.
func (p *place) nothingLeft() {
	p.t.Helper()
	list, err := p.engine.ListContainers(p.t.Context(), "dev.sandpit.server="+p.namespace)
	p.must(err)
	if len(list) > 0 {
		p.t.Errorf("left are %v", list)
	}
	for _, name := range []string{p.dir, filepath.Join(p.dir, "instances")} {
		left, err := filepath.Glob(filepath.Join(name, "trial.*"))
		p.must(err)
		if len(left) > 0 {
			p.t.Errorf("left are %v", left)
		}
	}
}
