// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
)

// stream makes the place's driver one that reaches agents by streams.
func (p *place) stream(host string) {
	p.t.Helper()
	p.must(p.driver.Close())
	p.driver = openWith(p.t, docker.Options{Dir: p.dir, Namespace: p.namespace, Engine: engineapi.Environment{Host: host}, Stream: true})
}

// steps lists the containers that make sockets, of all servers.
func (p *place) steps() []engineapi.Listed {
	p.t.Helper()
	list, err := p.engine.ListContainers(p.t.Context(), "dev.sandpit.role=step")
	p.must(err)
	return list
}

const reached, isRefused, isReset = "to 93.184.216.34:443\n", "refused", "reset by peer"

// The step is over when the traffic begins, and nothing of it is left. What ends the stream ends the traffic, which is found
// again; so is that of a container that was paused meanwhile.
func agentTraffic(t *testing.T, p *place) {
	p.stream("unix://" + p.host.Socket())
	i, spec, id := p.create()
	ctx := t.Context()
	events, err := p.engine.Events(ctx, time.Time{}, []string{"start"}, "dev.sandpit.role=step")
	p.must(err)
	made := make(chan engineapi.Event, 10)
	go func() {
		defer close(made)
		for {
			e, err := events.Next()
			if err != nil {
				return
			}
			made <- e
		}
	}()
	p.run(i, agent.Command{Shell: "true"}) // so that the first relay is that of calls
	traffic := p.steered(i)
	if e := <-made; e.Actor.Attributes["dev.sandpit.server"] != p.namespace {
		t.Errorf("a step of %q", e.Actor.Attributes["dev.sandpit.server"])
	}
	if left := p.steps(); len(left) != 0 {
		t.Errorf("steps are left: %+v", left)
	}
	if got := p.run(i, agent.Command{Shell: ask}); got != reached {
		t.Errorf("got %q", got)
	}
	// The relay that carries the traffic ends, as with an Engine that has no more of it.
	relays := strings.Fields(p.run(i, agent.Command{Shell: "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep -q '^/.sandpit/agent/sandpit-agent relay' && echo ${p#/proc/}; done", User: "root"}))
	if len(relays) != 2 {
		t.Fatalf("%d relays carry calls and traffic", len(relays))
	}
	slices.SortFunc(relays, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	p.run(i, agent.Command{Shell: "kill -9 " + relays[1], User: "root"})
	if _, err := traffic.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after its stream broke: %v", err)
	}
	p.must(traffic.Close())
	if got := p.run(i, agent.Command{Shell: ask}); !strings.Contains(got, isRefused) {
		t.Errorf("without its stream: %q", got)
	}
	p.steered(i)
	if got := p.run(i, agent.Command{Shell: ask}); got != reached {
		t.Errorf("found again: %q", got)
	}
	// The next server finds it paused.
	p.must(i.(runtime.Pauser).Pause(ctx))
	p.stream("unix://" + p.host.Socket())
	i, err = p.driver.Open(ctx, runtime.Handle{ID: spec.ID})
	p.must(err)
	traffic = p.steered(i)
	p.must(i.(runtime.Pauser).Resume(ctx))
	for got := ""; got != reached; { // the session of the server before ends, with what it carries, as this one begins
		if got = p.run(i, agent.Command{Shell: ask}); got != reached && !strings.Contains(got, isRefused) && !strings.Contains(got, isReset) {
			t.Fatalf("resumed: %q", got)
		}
	}
	p.must(i.(runtime.Pauser).Pause(ctx))
	p.must(traffic.Close())
	again, err := i.(runtime.Networker).Steer(ctx)
	p.must(err)
	p.must(again.Close()) // before it began
	p.must(i.(runtime.Pauser).Resume(ctx))
	select {
	case e := <-made:
		t.Errorf("another step was made: %+v", e)
	default:
	}
	events.Close()

	t.Run("WithAnotherInterface", func(t *testing.T) {
		ns := containerNetwork(t, p, id)
		inNamespace(t, ns, "link", "add", "out0", "type", "veth", "peer", "name", "out1")
		inNamespace(t, ns, "link", "set", "out0", "up")
		_, err := i.(runtime.Networker).Steer(ctx)
		if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "out0") || !strings.Contains(fault.As(err).Remedy, "docker network disconnect") {
			t.Errorf("got %v", err)
		}
		inNamespace(t, ns, "link", "del", "out0")
	})
	t.Run("AStepThatAServerLeft", func(t *testing.T) {
		c, err := p.engine.InspectContainer(ctx, id)
		p.must(err)
		leave := func(server, of string) string {
			left, err := p.engine.CreateContainer(ctx, engineapi.Container{Name: "step-" + newNamespace(), Config: engineapi.Config{
				Image: c.Image, Cmd: []string{"none"}, Labels: map[string]string{"dev.sandpit.server": server, "dev.sandpit.role": "step", "dev.sandpit.of": of, "dev.sandpit.sandbox": ""},
			}, Host: engineapi.HostConfig{NetworkMode: "none"}})
			p.must(err)
			return left
		}
		ours, others, copied := leave(p.namespace, c.Image), leave(newNamespace(), c.Image), leave(p.namespace, "sha256:other")
		p.stream("unix://" + p.host.Socket())
		var left []string
		for _, s := range p.steps() {
			left = append(left, s.ID)
			p.must(p.engine.RemoveContainer(ctx, s.ID))
		}
		if slices.Contains(left, ours) || !slices.Contains(left, others) || !slices.Contains(left, copied) {
			t.Errorf("left are %v", left)
		}
	})
	i, err = p.driver.Open(ctx, runtime.Handle{ID: spec.ID})
	p.must(err)
	p.must(i.Remove(ctx))
}

// containerNetwork opens the network of a container, whose first process the Engine's host shows under another number.
func containerNetwork(t *testing.T, p *place, id string) *os.File {
	t.Helper()
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range groups {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), id) {
			f, err := os.Open(filepath.Join(filepath.Dir(path), "ns/net"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return f
		}
	}
	t.Fatal("the container has no process")
	return nil
}

// Over TCP nothing but the Engine's API is there.
func trafficElsewhere(t *testing.T, p *place) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p.must(err)
	var carrying sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer func() {
		p.stream("unix://" + p.host.Socket()) // nothing dials any more
		_ = l.Close()
		cancel()
		carrying.Wait()
	}()
	carrying.Go(func() { forward(ctx, &carrying, l, p.host.Socket()) })
	p.stream("tcp://" + l.Addr().String())
	caps, err := p.driver.Probe(t.Context())
	p.must(err)
	p.must(caps[runtime.Network])
	i, _, _ := p.create()
	traffic := p.steered(i)
	if got := p.run(i, agent.Command{Shell: ask}); got != reached {
		t.Errorf("got %q", got)
	}
	p.must(traffic.Close())
	p.must(i.Remove(t.Context()))
}

// forward carries connections to a unix socket, each direction until its end.
func forward(ctx context.Context, all *sync.WaitGroup, l net.Listener, socket string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			to, err := net.Dial("unix", socket)
			if err != nil {
				_ = c.Close()
				return
			}
			stop := context.AfterFunc(ctx, func() { _, _ = c.Close(), to.Close() })
			defer stop()
			var back sync.WaitGroup
			back.Go(func() {
				_, _ = io.Copy(c, to)
				_ = c.(*net.TCPConn).CloseWrite()
			})
			_, _ = io.Copy(to, c)
			_ = to.(*net.UnixConn).CloseWrite()
			back.Wait()
			_, _ = c.Close(), to.Close()
		})
	}
}

// How fast traffic goes through an agent is for people to read.
func TestSoakTraffic(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to carry gigabytes through an agent")
	}
	p := newPlace(t, dockerdtest.New(t))
	p.stream("unix://" + p.host.Socket())
	i, _, _ := p.create()
	began := time.Now()
	traffic, err := i.(runtime.Networker).Steer(t.Context())
	p.must(err)
	t.Logf("the first Steer took %v", time.Since(began))
	p.must(traffic.Close())
	began = time.Now()
	traffic, err = i.(runtime.Networker).Steer(t.Context())
	p.must(err)
	t.Logf("the second Steer took %v", time.Since(began))
	defer func() { p.must(traffic.Close()) }()
	const size = 2 << 30
	took := make(chan time.Duration, 100)
	go func() {
		for {
			c, err := traffic.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var what [1]byte
				if _, err := io.ReadFull(c, what[:]); err != nil {
					return
				}
				began := time.Now()
				switch what[0] {
				case 'd':
					b := make([]byte, 64<<10)
					for range size / len(b) {
						if _, err := c.Write(b); err != nil {
							t.Error(err)
							return
						}
					}
					_ = c.CloseWrite()
					_, _ = io.Copy(io.Discard, c)
				case 'u':
					if n, err := io.Copy(io.Discard, c); n != size || err != nil {
						t.Errorf("%d bytes, %v", n, err)
					}
					_, _ = c.Write([]byte("."))
				}
				took <- time.Since(began)
			}()
		}
	}()
	const program = `import socket, sys
s = socket.create_connection(('93.184.216.34', 443), 5); s.sendall(sys.argv[1].encode())
b = bytearray(1 << 18); n = 0
if sys.argv[1] == 'd':
    while True:
        k = s.recv_into(b)
        if not k: break
        n += k
else:
    for _ in range((2 << 30) // len(b)): s.sendall(b); n += len(b)
    s.shutdown(socket.SHUT_WR); s.recv(1)
print(n)`
	for _, way := range []string{"d", "u", "d", "u"} {
		done := make(chan string, 1)
		go func() {
			done <- p.run(i, agent.Command{Argv: []string{"python3", "-c", program, way}})
		}()
		// What calls take meanwhile.
		var worst time.Duration
		calls := 0
		for waiting := true; waiting; {
			select {
			case got := <-done:
				if got != fmt.Sprintln(size) {
					t.Errorf("%s: %q", way, got)
				}
				waiting = false
			default:
				began := time.Now()
				if got := p.run(i, agent.Command{Shell: "echo beside"}); !strings.HasPrefix(got, "beside") {
					t.Errorf("a command beside it: %q", got)
				}
				worst = max(worst, time.Since(began))
				calls++
				time.Sleep(50 * time.Millisecond)
			}
		}
		d := <-took
		t.Logf("%s: %.2f Gbit/s, %d commands beside it took at most %v", way, float64(size)*8/d.Seconds()/1e9, calls, worst)
	}
}
