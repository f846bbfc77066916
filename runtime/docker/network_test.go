// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
)

// steered brings a sandbox's traffic to the test, where each connection is told whereto it was meant.
func (p *place) steered(i runtime.Instance) runtime.Traffic {
	p.t.Helper()
	traffic, err := i.(runtime.Networker).Steer(p.t.Context())
	p.must(err)
	go func() {
		for {
			c, err := traffic.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "to "+c.LocalAddr().String())
			_ = c.Close()
		}
	}()
	return traffic
}

const ask = `python3 -c "
import socket
try: print(socket.create_connection(('93.184.216.34', 443), 5).makefile().read())
except OSError as e: print(e)"`

// namespaceOf is a container's network, as the kernel names it.
func (p *place) namespaceOf(i runtime.Instance) string {
	p.t.Helper()
	return strings.TrimSpace(p.run(i, agent.Command{Shell: "readlink /proc/self/ns/net"}))
}

// holders are processes and descriptors of this process that a network namespace lives by.
func holders(t *testing.T, ns string) (out []string) {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/ns/net", "/proc/self/task/*/ns/net", "/proc/self/fd/*"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range list {
			if is, err := os.Readlink(path); err == nil && is == ns {
				out = append(out, path)
			}
		}
	}
	return out
}

// Every start has a network of its own, which is steered anew, and of the last one nothing is left.
func networks(t *testing.T, p *place) {
	i, spec, id := p.create()
	ctx := t.Context()
	for range 3 {
		ns := p.namespaceOf(i) // a number that the kernel gives again
		if got := p.run(i, agent.Command{Shell: ask}); !strings.Contains(got, "unreachable") {
			t.Errorf("before it is steered: %q", got)
		}
		traffic := p.steered(i)
		if got := p.run(i, agent.Command{Shell: ask}); got != "to 93.184.216.34:443\n" {
			t.Errorf("steered: %q", got)
		}
		// The container goes, and not by us.
		p.must(p.engine.KillContainer(ctx, id))
		p.wait(i)
		p.must(traffic.Close())
		if left := holders(t, ns); len(left) != 0 {
			t.Errorf("after its end %s is held by %v", ns, left)
		}
		if _, err := i.(runtime.Networker).Steer(ctx); fault.Of(err) != fault.State {
			t.Errorf("Steer of what is down: %v", err)
		}
		p.must(i.Start(ctx, spec))
	}
	t.Run("Paused", func(t *testing.T) {
		p.must(i.(runtime.Pauser).Pause(ctx))
		traffic := p.steered(i)
		p.must(i.(runtime.Pauser).Resume(ctx))
		if got := p.run(i, agent.Command{Shell: ask}); got != "to 93.184.216.34:443\n" {
			t.Errorf("steered while it was paused: %q", got)
		}
		p.must(traffic.Close())
	})
	t.Run("WithAnotherInterface", func(t *testing.T) {
		ns := openNamespace(t, p.namespaceOf(i))
		inNamespace(t, ns, "link", "add", "out0", "type", "veth", "peer", "name", "out1")
		inNamespace(t, ns, "link", "set", "out0", "up")
		_, err := i.(runtime.Networker).Steer(ctx)
		if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "out0") || !strings.Contains(fault.As(err).Remedy, "docker network disconnect") {
			t.Errorf("got %v", err)
		}
		inNamespace(t, ns, "link", "del", "out0")
		p.must(p.steered(i).Close())
	})
	p.must(i.Remove(ctx))
}

// openNamespace opens the network namespace of that name, by a process that is in it.
func openNamespace(t *testing.T, ns string) *os.File {
	t.Helper()
	list := holders(t, ns)
	if len(list) == 0 {
		t.Fatalf("no process is in %s", ns)
	}
	f, err := os.Open(list[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// inNamespace runs ip(8) there.
func inNamespace(t *testing.T, ns *os.File, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the host has no ip, which adds an interface")
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	out, failed := exec.Command("ip", args...).CombinedOutput()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		t.Fatalf("ip %v: %v: %s", args, failed, out)
	}
}

// Root may take the agent's place at its socket. What is steered is this container's network then, or
// nothing: never another's, and never the host's.
func socketOfAnother(t *testing.T, p *place) {
	i, spec, _ := p.create()
	other, _, _ := p.create()
	ctx := t.Context()
	host, err := os.Readlink("/proc/self/ns/net")
	p.must(err)
	process, err := agent.NewClient(i.Dial).Start(ctx, agent.Command{ID: "abcdefgh12345678", User: "root", Argv: []string{"python3", "-c", `
import os, socket, time
os.rename('/.sandpit/run/agent.sock', '/.sandpit/run/behind')
s = socket.socket(socket.AF_UNIX); s.bind('/.sandpit/run/agent.sock'); s.listen(); print('ready', flush=True)
time.sleep(600)`}})
	p.must(err)
	defer process.Close()
	if f, err := process.Next(ctx); err != nil || string(f.Data) != "ready\n" {
		t.Fatalf("got %q, %v", f.Data, err)
	}
	traffic, err := i.(runtime.Networker).Steer(ctx)
	p.must(err)
	if got := p.run(other, agent.Command{Shell: ask}); !strings.Contains(got, "unreachable") {
		t.Errorf("another sandbox has a network by it: %q", got)
	}
	if now, err := os.Readlink("/proc/self/ns/net"); err != nil || now != host {
		t.Errorf("the server is in %s, %v", now, err)
	}
	p.must(traffic.Close())
	p.must(i.Stop(ctx, 0))
	p.must(i.Start(ctx, spec))
	p.run(i, agent.Command{Shell: "true"}) // it listens
	// A socket of somebody outside of the container, which nobody inside can put there.
	run := filepath.Join(p.dir, "instances", string(spec.ID), "run")
	p.must(os.Rename(filepath.Join(run, "agent.sock"), filepath.Join(run, "behind")))
	p.must(os.Link(filepath.Join(p.dir, "instances", string(other.Handle().ID), "run", "agent.sock"), filepath.Join(run, "agent.sock")))
	if _, err := i.(runtime.Networker).Steer(ctx); fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "no cgroup of its container") {
		t.Errorf("by another container's socket: %v", err)
	}
	p.must(os.Remove(filepath.Join(run, "agent.sock")))
	p.must(os.Rename(filepath.Join(run, "behind"), filepath.Join(run, "agent.sock")))
	p.must(i.Remove(ctx))
	p.must(other.Remove(ctx))
}

// Where no traffic can come to the server it says why, before anything is made and when it is asked for.
func withoutNetworks(t *testing.T, h *dockerdtest.Host) {
	for _, name := range []string{"runsc", "kata-runtime"} {
		for _, stream := range []bool{false, true} {
			d := openWith(t, docker.Options{Dir: t.TempDir(), Namespace: newNamespace(), Engine: engineapi.Environment{Host: "unix://" + h.Socket()}, Runtime: name, Stream: stream})
			caps, err := d.Probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := caps[runtime.Network]; fault.Of(err) != fault.Unsupported || !strings.Contains(err.Error(), name) || fault.As(err).Remedy == "" {
				t.Errorf("of %s: %v", name, err)
			}
			_ = d.Close()
		}
	}
	// As in a container to which the Engine's socket was given, and not the host's processes.
	inside := exec.Command(os.Args[0])
	inside.Env = append(os.Environ(), probeSocket+"="+h.Socket(), probeDir+"="+t.TempDir())
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	out, err := inside.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "unsupported: ") || !strings.Contains(string(out), "does not see the processes") || !strings.Contains(string(out), "--pid host") {
		t.Errorf("in another namespace of processes: %q, %v", out, err)
	}
}

// What a process that only probes reads from its environment.
const (
	probeSocket = "SANDPIT_TEST_PROBE_SOCKET"
	probeDir    = "SANDPIT_TEST_PROBE_DIR"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(probeSocket); socket != "" {
		if err := printNetwork(context.Background(), socket, os.Getenv(probeDir)); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

// printNetwork prints why there are no networks.
func printNetwork(ctx context.Context, socket, dir string) error {
	d, err := docker.Open(ctx, docker.Options{Dir: dir, Namespace: newNamespace(), Engine: engineapi.Environment{Host: "unix://" + socket}})
	if err != nil {
		return err
	}
	caps, err := d.Probe(ctx)
	if why := fault.As(caps[runtime.Network]); err == nil && why != nil {
		fmt.Printf("%s: %s\n%s\n", why.Code, why.Message, why.Remedy)
	}
	return errors.Join(err, d.Close())
}
