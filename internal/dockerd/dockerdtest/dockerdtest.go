// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package dockerdtest starts an Engine for tests, Docker's or Podman's. The first one on a machine that has none
// fetches Debian's package, without installing it; it is kept where the benchmark keeps its own.
package dockerdtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"testing"

	"sandpit.dev/internal/dockerd"
	"sandpit.dev/internal/programs"
	"sandpit.dev/internal/skiptest"
)

// Host is where a test has Engines, one after the other over the same data.
type Host struct {
	Dir string // which an Engine sees as the test does

	t       testing.TB
	options dockerd.Options
	kit     programs.Kit
	start   starter
	engine  *dockerd.Engine
	socket  string
	lent    []dockerd.Image
}

// New returns a host whose Engine, Docker's, runs until the test's end. It skips the test where there can be none.
func New(t testing.TB) *Host {
	t.Helper()
	return newHost(t, dockerd.Start, dockerd.FindDocker, dockerd.Options{})
}

// NewSmall is New with an Engine whose data are on a file system of a size, and go with it.
func NewSmall(t testing.TB, bytes int64) *Host {
	t.Helper()
	return newHost(t, dockerd.Start, dockerd.FindDocker, dockerd.Options{DataBytes: bytes})
}

// NewOn is New with an Engine whose data are on a file system of a size, mounted with options: see [dockerd.Options].
func NewOn(t testing.TB, bytes int64, system, options string) *Host {
	t.Helper()
	return newHost(t, dockerd.Start, dockerd.FindDocker, dockerd.Options{DataBytes: bytes, DataFS: system, DataOptions: options})
}

// NewTLS is New with an Engine that listens over TLS in its own network, too, see [Host.ServeTCP], with the certificates of a directory.
func NewTLS(t testing.TB, certificates string) *Host {
	t.Helper()
	return newHost(t, dockerd.Start, dockerd.FindDocker, dockerd.Options{TLS: certificates})
}

// NewMapped is New with an Engine that maps the users of containers.
func NewMapped(t testing.TB) *Host {
	t.Helper()
	return newHost(t, dockerd.Start, dockerd.FindDocker, dockerd.Options{MapUsers: true})
}

// NewRootless is New with an Engine that is nobody on the host.
func NewRootless(t testing.TB) *Host {
	t.Helper()
	return newHost(t, dockerd.Start, dockerd.FindDocker, dockerd.Options{Rootless: true})
}

// NewPodman is New with Podman's service.
func NewPodman(t testing.TB) *Host {
	t.Helper()
	return newHost(t, dockerd.StartPodman, dockerd.FindPodman, dockerd.Options{})
}

// NewRootlessPodman is NewPodman with a Podman that a user has started, of Debian 13: that of 12 lacks newuidmap where it is not installed.
func NewRootlessPodman(t testing.TB) *Host {
	t.Helper()
	return newHost(t, dockerd.StartPodman, dockerd.FindPodman, dockerd.Options{Rootless: true, Suite: "trixie"})
}

type (
	starter func(context.Context, dockerd.Options) (*dockerd.Engine, error)
	finder  func(context.Context, dockerd.Options) (programs.Kit, error)
)

// suiteVariable names another release of Debian, whose Engines the tests have then: trixie has Docker 26 and Podman 5.4.
const suiteVariable = "SANDPIT_TEST_ENGINES"

func newHost(t testing.TB, start starter, find finder, o dockerd.Options) *Host {
	t.Helper()
	skiptest.WithoutRoot(t, "an Engine makes namespaces")
	dir, err := os.MkdirTemp("", "dockerd-") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.LookPath("apt-get")
	o.Dir, o.Group, o.Suite = dir, "sandpit-test-"+rand.Text(), cmp.Or(o.Suite, os.Getenv(suiteVariable))
	o.Programs = &programs.Finder{Cache: programs.UserCache(), Scratch: dir + "/fetched", Fetch: err == nil}
	h := &Host{Dir: dir, t: t, start: start, options: o}
	t.Cleanup(func() {
		h.Stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove what the Engine left: %v", err)
		}
	})
	if h.kit, err = find(t.Context(), h.options); err != nil {
		if !h.options.Programs.Fetch {
			t.Skipf("no Engine: %v", err)
		}
		t.Fatal(err)
	}
	h.Start()
	return h
}

// Start starts the Engine, if none runs.
func (h *Host) Start() {
	h.t.Helper()
	if h.engine != nil {
		return
	}
	e, err := h.start(h.t.Context(), h.options)
	if err != nil {
		h.t.Fatalf("start an Engine: %v", err)
	}
	h.engine, h.socket = e, e.Socket
	for _, img := range h.lent {
		h.lend(img)
	}
}

// Lend gives the Engine an image without a copy of its files, see [dockerd.Engine.Lend], and each that is started later.
func (h *Host) Lend(img dockerd.Image) {
	h.t.Helper()
	h.lent = append(h.lent, img)
	h.lend(img)
}

func (h *Host) lend(img dockerd.Image) {
	h.t.Helper()
	if err := h.engine.Lend(h.t.Context(), img); err != nil {
		h.t.Fatalf("lend the Engine an image: %v", err)
	}
}

// Stop ends the Engine as a crash of its host does, with all containers. Twice is fine.
func (h *Host) Stop() {
	if h.engine == nil {
		return
	}
	if err := h.engine.Close(); err != nil {
		h.t.Errorf("end the Engine: %v", err)
	}
	h.engine = nil
}

// Docker returns a command of the docker program, which speaks to the Engine. It ends with the test.
func (h *Host) Docker(args ...string) *exec.Cmd {
	cmd := h.kit.Command(h.t.Context(), "docker", args...)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "DOCKER_HOST=unix://"+h.socket, "DOCKER_CONFIG="+h.Dir+"/config")
	return cmd
}

// Engine returns the one that runs.
func (h *Host) Engine() *dockerd.Engine { return h.engine }

// Socket returns the path of its socket, which is the same for each.
func (h *Host) Socket() string { return h.socket }
