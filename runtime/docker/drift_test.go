// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// tiny is an image with one file; what it says makes it another.
func tiny(t *testing.T, says string) runtime.Image {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(says), 0o644); err != nil {
		t.Fatal(err)
	}
	return runtime.Image{Name: "tiny", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(says))), Root: dir}
}

// drifting is a server whose rights change between its lives: docker.runtime is runc, the default by its name, or is
// not. The fingerprint is of the words.
type drifting struct {
	t         *testing.T
	socket    string
	dir       string
	namespace string
	spec      runtime.Spec
	log       bytes.Buffer
	engine    *engineapi.Client
}

func newDrifting(t *testing.T, h *dockerdtest.Host) *drifting {
	return &drifting{
		t: t, socket: h.Socket(), dir: t.TempDir(), namespace: newNamespace(), engine: found(t, h),
		spec: runtime.Spec{ID: sandbox.NewID(), Image: tiny(t, "drift"), Hostname: "box", Project: "p", Limits: sandbox.DefaultLimits()},
	}
}

func (s *drifting) open(o docker.Options) *docker.Driver {
	s.t.Helper()
	s.log.Reset()
	o.Dir, o.Namespace, o.Logger = s.dir, s.namespace, slog.New(slog.NewTextHandler(&s.log, nil))
	o.Engine = engineapi.Environment{Host: "unix://" + s.socket}
	return openWith(s.t, o)
}

// make makes a sandbox with a file, by a server that has ended.
func (s *drifting) make(o docker.Options) {
	s.t.Helper()
	d := s.open(o)
	i, err := d.Create(s.t.Context(), s.spec)
	if err == nil {
		_, _, err = agent.NewClient(i.Dial).WriteFile(s.t.Context(), "/mine", strings.NewReader("kept"), sandbox.WriteFileOptions{User: "root", Mode: 0o640})
	}
	s.must(err)
	s.must(d.Close())
}

func (s *drifting) must(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *drifting) found(d *docker.Driver) runtime.Instance {
	s.t.Helper()
	i, err := d.Open(s.t.Context(), runtime.Handle{ID: s.spec.ID})
	s.must(err)
	return i
}

// has fails the test unless the sandbox has its file.
func (s *drifting) has(i runtime.Instance) {
	s.t.Helper()
	info, r, err := agent.NewClient(i.Dial).ReadFile(s.t.Context(), "/mine", sandbox.ReadFileOptions{User: "root"})
	s.must(err)
	defer func() { _ = r.Close() }()
	if b, err := io.ReadAll(r); err != nil || string(b) != "kept" || info.Mode.Perm() != 0o640 {
		s.t.Errorf("its file is %q %v, %v", b, info.Mode, err)
	}
}

// container returns its only one.
func (s *drifting) container() engineapi.Inspected {
	s.t.Helper()
	list, err := s.engine.ListContainers(s.t.Context(), "dev.sandpit.sandbox="+string(s.spec.ID))
	s.must(err)
	if len(list) != 1 {
		s.t.Fatalf("its containers are %+v", list)
	}
	c, err := s.engine.InspectContainer(s.t.Context(), list[0].ID)
	s.must(err)
	return c
}

// images returns how many the Engine has of it.
func (s *drifting) images() int {
	s.t.Helper()
	list, err := s.engine.ListImages(s.t.Context(), "dev.sandpit.server="+s.namespace)
	s.must(err)
	return len(list)
}

func note(i runtime.Instance) string { return i.(runtime.Noter).Note() } //nolint:forcetypeassert // fails the test

const driftWords = "other rights"

// A container that was made by other rules is told of, by the log and by doctor, until its next start, which makes one by
// those of now on the same disk.
func TestDriftIsToldAndMendedByTheNextStart(t *testing.T) {
	s := newDrifting(t, dockerdtest.New(t))
	ctx := t.Context()
	s.make(docker.Options{})
	before := s.container()

	d := s.open(docker.Options{Runtime: "runc"})
	i := s.found(d)
	if !strings.Contains(s.log.String(), driftWords) || !strings.Contains(s.log.String(), string(s.spec.ID)) {
		t.Errorf("the log says %s", s.log.String())
	}
	s.has(i) // it runs as it did
	if now := s.container(); now.ID != before.ID || now.State.Pid != before.State.Pid || note(i) != "" {
		t.Errorf("it has another container while it runs: %+v, and says %q", now.State, note(i))
	}
	s.must(d.Close())
	kind := docker.Kind{Host: "unix://" + s.socket, Runtime: "runc"}
	inspect := func(mend bool) []runtime.Finding {
		t.Helper()
		got, err := kind.Inspect(ctx, runtime.Place{Dir: s.dir, Namespace: s.namespace}, func(sandbox.ID) string { return "" }, mend)
		s.must(err)
		return got
	}
	if got := inspect(false); len(got) != 1 || got[0].Name != "sandbox "+string(s.spec.ID) || !strings.Contains(got[0].What, driftWords) || !strings.Contains(got[0].What, "start it again") {
		t.Errorf("doctor finds %+v", got)
	}
	if got := inspect(true); len(got) != 0 {
		t.Errorf("a repair finds %+v, which it has no means to mend", got)
	}

	d = s.open(docker.Options{Runtime: "runc"})
	i = s.found(d)
	snapshot := sandbox.NewID()
	_, err := d.Snapshot(ctx, s.spec.ID, snapshot)
	s.must(err, i.Stop(ctx, 0), i.Start(ctx, s.spec))
	if !strings.Contains(note(i), driftWords) || !strings.Contains(note(i), "kept its disk") {
		t.Errorf("the start says %q", note(i))
	}
	s.has(i)
	after := s.container()
	if after.ID == before.ID || after.HostConfig.Runtime != "runc" || after.Name != before.Name || after.Config.Hostname != "box" {
		t.Errorf("its container is %s %s of the runtime %s", after.ID, after.Name, after.HostConfig.Runtime)
	}
	for label, value := range before.Config.Labels {
		changes := label == "dev.sandpit.of" || label == "dev.sandpit.policy"
		if now := after.Config.Labels[label]; (now != value) != changes {
			t.Errorf("the label %s was %q and is %q", label, value, now)
		}
	}
	s.must(i.Stop(ctx, 0), i.Start(ctx, s.spec))
	if note(i) != "" || s.container().ID != after.ID {
		t.Errorf("the start after that says %q, and its container is %s", note(i), s.container().ID)
	}
	// What snapshots do, they do of it.
	s.must(i.Stop(ctx, 0), d.Rollback(ctx, s.spec.ID, snapshot, s.spec.Limits), i.Start(ctx, s.spec))
	s.has(i)
	s.must(d.RemoveSnapshot(ctx, snapshot), d.Close())
	if got := inspect(false); len(got) != 0 {
		t.Errorf("doctor finds %+v", got)
	}
	d = s.open(docker.Options{Runtime: "runc"})
	s.must(s.found(d).Remove(ctx))
	if n := s.images(); n != 0 {
		t.Errorf("%d images are left", n)
	}
	s.must(d.Close())
}

// Over streams, too, a container gets the rights of now.
func TestDriftIsMendedOverStreams(t *testing.T) {
	s := newDrifting(t, dockerdtest.New(t))
	s.make(docker.Options{Stream: true})
	before := s.container()
	d := s.open(docker.Options{Stream: true, Runtime: "runc"})
	i := s.found(d)
	s.must(i.Stop(t.Context(), 0), i.Start(t.Context(), s.spec))
	if !strings.Contains(note(i), driftWords) || !strings.Contains(note(i), "kept its disk") {
		t.Errorf("the start says %q", note(i))
	}
	s.has(i)
	if now := s.container(); now.ID == before.ID || now.HostConfig.Runtime != "runc" {
		t.Errorf("its container was %s and is %s, of the runtime %q", before.ID, now.ID, now.HostConfig.Runtime)
	}
	s.must(i.Remove(t.Context()), d.Close())
	if n := s.images(); n != 0 {
		t.Errorf("%d images are left", n)
	}
}

// Where a container with the rights of now cannot be made it starts as it is, and why is told.
func TestDriftThatCannotBeMendedIsTold(t *testing.T) {
	h := dockerdtest.New(t)
	for name, test := range map[string]struct {
		made, now docker.Options
		why       string
	}{
		"AnUnknownRuntime": {docker.Options{}, docker.Options{Runtime: "none-such"}, "none-such"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDrifting(t, h)
			s.make(test.made)
			before := s.container()
			d := s.open(test.now)
			i := s.found(d)
			s.must(i.Stop(t.Context(), 0), i.Start(t.Context(), s.spec))
			if !strings.Contains(note(i), driftWords) || !strings.Contains(note(i), "goes on as it is") || !strings.Contains(note(i), test.why) {
				t.Errorf("the start says %q", note(i))
			}
			s.has(i)
			if now := s.container(); now.ID != before.ID {
				t.Errorf("its container was %s and is %s", before.ID, now.ID)
			}
			s.must(i.Remove(t.Context()), d.Close())
			if n := s.images(); n != 0 {
				t.Errorf("%d images are left", n)
			}
		})
	}
}

// A server that is killed at any step leaves one container with the disk, and the next server's start has the rights of now.
func TestDriftIsMendedThoughTheServerIsKilled(t *testing.T) {
	h := dockerdtest.New(t)
	for _, step := range []string{"POST /commit?*", "POST /containers/create?name=NAME.next", "POST /containers/OLD/rename?name=NAME.old", "POST /containers/*/rename?name=NAME", "DELETE /containers/OLD?*"} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/done=%v", strings.NewReplacer("/", "_", "*", "", "?", " ").Replace(step), done), func(t *testing.T) {
				t.Parallel()
				s := newDrifting(t, h)
				s.make(docker.Options{})
				direct, name := s.socket, "sandpit-"+s.namespace+"-"+string(s.spec.ID)
				cut := newCutter(t, direct, strings.NewReplacer("NAME", name, "OLD", s.container().ID).Replace(step), done)
				s.socket = cut.socket
				d := s.open(docker.Options{Runtime: "runc"})
				i := s.found(d)
				s.must(i.Stop(t.Context(), 0))
				cut.armed.Store(true)
				if err := i.Start(t.Context(), s.spec); err == nil {
					t.Error("it started without its Engine")
				}
				if !cut.over.Load() {
					t.Fatal("it did not come to that step")
				}
				s.must(d.Close())
				s.socket = direct
				d = s.open(docker.Options{Runtime: "runc"})
				i = s.found(d)
				s.must(i.Start(t.Context(), s.spec))
				s.has(i)
				if c := s.container(); c.HostConfig.Runtime != "runc" || c.Name != "/"+name {
					t.Errorf("its container is %s, of the runtime %q", c.Name, c.HostConfig.Runtime)
				}
				if n := s.images(); n != 1 {
					t.Errorf("the Engine has %d images of it, want one", n)
				}
				s.must(i.Remove(t.Context()), d.Close())
				if n := s.images(); n != 0 {
					t.Errorf("%d images are left", n)
				}
			})
		}
	}
}

// cutter is between a server and its Engine, and lets nothing through from one request on: to the Engine it is as if
// the server was killed.
type cutter struct {
	socket      string
	armed, over atomic.Bool
}

func newCutter(t *testing.T, engine, step string, done bool) *cutter {
	t.Helper()
	dir, err := os.MkdirTemp("", "cut-") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{socket: filepath.Join(dir, "s")}
	l, err := net.Listen("unix", c.socket)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", engine)
	}}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine" },
		Transport: transport, FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	want := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(step), `\*`, ".*") + "$")
	version := regexp.MustCompile(`^/v[0-9.]+`)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.over.Load() {
			panic(http.ErrAbortHandler)
		}
		if c.armed.Load() && want.MatchString(r.Method+" "+version.ReplaceAllString(r.URL.Path, "")+"?"+r.URL.RawQuery) {
			c.over.Store(true)
			if done {
				proxy.ServeHTTP(httptest.NewRecorder(), r)
			}
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
		transport.CloseIdleConnections()
		_ = os.RemoveAll(dir)
	})
	return c
}

func found(t *testing.T, h *dockerdtest.Host) *engineapi.Client {
	t.Helper()
	c, err := engineapi.Find(t.Context(), engineapi.Environment{Host: "unix://" + h.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
