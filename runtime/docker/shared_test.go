// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// ask reads an answer of the Engine's as it is, since the driver's types have only what it uses.
func (p *place) ask(path string, out any) {
	p.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.host.Socket())
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://engine"+path, nil)
	p.must(err)
	resp, err := transport.RoundTrip(req)
	p.must(err)
	p.must(errors.Join(json.NewDecoder(resp.Body).Decode(out), resp.Body.Close()))
}

// nothingShared: a container publishes no port, has no device, no namespace and no group of its host, and no network was made for it.
func (p *place) nothingShared(id string) {
	p.t.Helper()
	var c struct {
		HostConfig, Config, NetworkSettings map[string]any
	}
	p.ask("/containers/"+id+"/json", &c)
	for _, o := range []struct {
		of    map[string]any
		names []string
	}{
		{c.HostConfig, []string{
			"PortBindings", "PublishAllPorts", "Binds", "VolumesFrom", "Devices", "DeviceRequests", "DeviceCgroupRules", "GroupAdd", "Links", "ExtraHosts",
			"PidMode", "UTSMode", "UsernsMode", "Privileged", "AutoRemove",
		}},
		{c.Config, []string{"ExposedPorts", "OnBuild", "OpenStdin", "Tty"}},
		{c.NetworkSettings, []string{"Ports", "IPAddress", "Gateway"}},
	} {
		for _, name := range o.names {
			switch v := o.of[name].(type) {
			case nil:
			case []any:
				if len(v) > 0 {
					p.t.Errorf("%s is %v", name, v)
				}
			case map[string]any:
				if len(v) > 0 {
					p.t.Errorf("%s is %v", name, v)
				}
			default:
				if v != "" && v != false {
					p.t.Errorf("%s is %v", name, v)
				}
			}
		}
	}
	var networks []struct{ Name string }
	p.ask("/networks", &networks)
	for _, n := range networks {
		if !slices.Contains([]string{"none", "host", "bridge"}, n.Name) { // the Engine's own
			p.t.Errorf("there is a network %s", n.Name)
		}
	}
}

// begunOnce: a command whose stream breaks, whenever, is begun once or not at all. The next connection opens another stream.
func begunOnce(t *testing.T, p *place) {
	ctx := t.Context()
	line := newBrokenLine(t, p.host.Socket())
	p.must(p.driver.Close())
	p.driver = openWith(t, docker.Options{Dir: p.dir, Namespace: p.namespace, Engine: engineapi.Environment{Host: "unix://" + line.socket}, Stream: true})
	i, _, _ := p.create()
	start := func(c agent.Command) (*agent.Process, error) {
		c.ID = sandbox.NewProcessID()
		return agent.NewClient(i.Dial).Start(ctx, c)
	}
	// count reads how often a command was begun. What comes before the server has noticed that a stream broke is refused.
	count := func(file string) string {
		for {
			process, err := start(agent.Command{Shell: "touch " + file + "; wc -l < " + file})
			if err == nil {
				f, failed := process.Next(ctx)
				process.Close()
				if failed == nil {
					return string(f.Data)
				}
			}
			p.must(ctx.Err())
		}
	}
	for range 3 { // in the midst of it
		count("midst") // the stream is whole
		process, err := start(agent.Command{Shell: "echo x >> midst; echo begun; sleep 0.1; echo x >> through"})
		p.must(err)
		if f, err := process.Next(ctx); err != nil || string(f.Data) != "begun\n" {
			t.Fatalf("got %q, %v", f.Data, err)
		}
		line.breakAll()
		for err == nil {
			_, err = process.Next(ctx)
		}
		if errors.Is(err, io.EOF) {
			t.Error("a stream that broke is told as a command's end")
		}
		process.Close()
	}
	if got := count("midst"); got != "3\n" {
		t.Errorf("3 commands whose streams broke in their midst were begun %q times", got)
	}
	begun, ended := 0, 0
	for n := range 12 { // about when it begins
		file := fmt.Sprintf("begins-%d", n)
		broke := make(chan struct{})
		go func() {
			defer close(broke)
			time.Sleep(time.Duration(n) * 300 * time.Microsecond)
			line.breakAll()
		}()
		process, err := start(agent.Command{Shell: "echo x >> " + file})
		if err == nil {
			begun++
			for err == nil {
				_, err = process.Next(ctx)
			}
			process.Close()
		}
		<-broke
		whole := errors.Is(err, io.EOF)
		if whole {
			ended++
		}
		if got := count(file); got != "1\n" && (got != "0\n" || whole) {
			t.Errorf("a command whose stream broke was begun %q times (%v)", got, err)
		}
	}
	t.Logf("of 12, %d were begun before their stream broke, and %d had ended", begun, ended)
	p.must(i.Remove(ctx))
}
