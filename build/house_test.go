// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandpit.dev/access"
	"sandpit.dev/build"
	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/image"
	"sandpit.dev/image/entry"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/sqlstore"
)

// What the process that is to die reads from its environment.
const (
	crashDir   = "SANDPIT_TEST_CRASH_DIR"
	crashPoint = "SANDPIT_TEST_CRASH_POINT"
	crashAgent = "SANDPIT_TEST_CRASH_AGENT"
	// crashImages has a Dockerfile be built with the images of a directory.
	crashImages = "SANDPIT_TEST_CRASH_IMAGES"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, "the process should have been killed:", crash(dir, os.Getenv(crashPoint)))
		os.Exit(3)
	}
	goleak.VerifyTestMain(m)
}

// agentProgram is the agent as the server carries it.
var agentProgram = sync.OnceValues(func() ([]byte, error) {
	if built := os.Getenv(crashAgent); built != "" {
		return os.ReadFile(built)
	}
	dir, err := os.MkdirTemp("", "sandpit-agent-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "sandpit.dev/cmd/sandpit-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// base is images with one that is there.
type base struct{ img image.Image }

func (b base) Resolve(string) (image.Entry, error) { return image.Entry{Name: b.img.Name}, nil }

func (b base) Ensure(context.Context, string) (image.Image, error) { return b.img, nil }

func (b base) Find(context.Context, string) (image.Image, error) { return b.img, nil }

func (b base) FindDigest(string, string) (image.Image, error) { return b.img, nil }

func (b base) List(context.Context) ([]image.Status, error) { return nil, nil }

// house is a service over an engine and the native runtime.
type house struct {
	t       *testing.T
	dir     string
	base    image.Image
	driver  *native.Driver
	engine  *engine.Engine
	service *build.Service
	log     bytes.Buffer // of the last build
	stop    func()
}

func options(dir string, img image.Image, program []byte) (engine.Options, func(), error) {
	driver, err := native.Open(context.Background(), native.Options{Dir: filepath.Join(dir, "native"), Agent: program})
	if err != nil {
		return engine.Options{}, nil, err
	}
	st, err := sqlstore.Open(context.Background(), sqlstore.Options{Path: filepath.Join(dir, "records.db")})
	if err != nil {
		return engine.Options{}, nil, errors.Join(err, driver.Close())
	}
	o := engine.Options{Store: st, Runtimes: map[string]runtime.Driver{"native": driver}, Images: base{img}}
	o.Network.Builds = build.Project
	return o, func() { _, _ = st.Close(), driver.Close() }, nil
}

func open(t *testing.T, dir string, change ...func(*engine.Options, *build.Options)) *house {
	t.Helper()
	skiptest.WithoutRoot(t, "builds are made in sandboxes of the native runtime")
	program, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, dir: dir, base: imagetest.Python(t)}
	o, closeAll, err := options(dir, h.base, program)
	if err != nil {
		t.Fatal(err)
	}
	h.driver = o.Runtimes["native"].(*native.Driver)
	var b build.Options
	for _, f := range change {
		f(&o, &b)
	}
	if h.engine, err = engine.New(o); err != nil {
		t.Fatal(err)
	}
	h.service = build.New(h.engine, b)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.engine.Run(ctx, h.service.Resume) }()
	h.stop = sync.OnceFunc(func() {
		if left, err := h.driver.List(context.Background()); err != nil || len(left) > 0 {
			t.Errorf("left are %d instances, %v", len(left), err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error("Run:", err)
		}
		closeAll()
	})
	t.Cleanup(h.stop)
	if err := h.engine.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// build does steps, and returns what they made, which the test closes.
func (h *house) build(j image.Job) (*image.Built, error) {
	h.log.Reset()
	j.Name, j.Base, j.Log = "test", h.base, &h.log
	if j.Report == nil {
		j.Report = func(string, string, float64) {}
	}
	return h.service.Build(h.t.Context(), j)
}

// layer is what a build changed, unpacked by nobody: the text of its archive.
func (h *house) must(j image.Job) *image.Built {
	h.t.Helper()
	made, err := h.build(j)
	if err != nil {
		h.t.Fatalf("%v\n%s", err, h.log.String())
	}
	h.t.Cleanup(made.Close)
	return made
}

var looker = access.Caller{Project: build.Project, Actor: "test", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}

// clean fails if a build left anything but steps.
func (h *house) clean() {
	h.t.Helper()
	page, err := h.engine.List(h.t.Context(), looker, engine.SandboxesRequest{})
	if err != nil || len(page.Items) > 0 {
		h.t.Errorf("left are %d sandboxes, %v", len(page.Items), err)
	}
	handles, err := h.driver.List(h.t.Context())
	if err != nil || len(handles) > 0 {
		h.t.Errorf("left are %d instances, %v", len(handles), err)
	}
}

func (h *house) steps() int {
	h.t.Helper()
	page, err := h.engine.Snapshots(h.t.Context(), looker, snapshot.Query{})
	if err != nil {
		h.t.Fatal(err)
	}
	return page.Total
}

// sh is a step that runs a text as root.
func sh(text string) entry.Step {
	return entry.Step{Title: text, Commands: [][]string{{"/bin/sh", "-e", "-c", text}}, User: sandbox.UserRoot, Timeout: time.Minute}
}

// crash is a server that is killed at a point of a build.
func crash(dir, point string) error {
	program, err := agentProgram()
	if err != nil {
		return err
	}
	var img image.Image
	img.Name, img.Digest, img.Root = "python", os.Getenv("SANDPIT_TEST_CRASH_DIGEST"), os.Getenv("SANDPIT_TEST_CRASH_ROOT")
	kill := func(name string) {
		if name == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	o, _, err := options(dir, img, program)
	if err != nil {
		return err
	}
	o.Checkpoint = kill
	b := build.Options{Checkpoint: kill}
	var images *image.Store
	if dir := os.Getenv(crashImages); dir != "" {
		if images, err = image.Open(image.Options{Dir: dir}); err != nil {
			return err
		}
		o.Images, b.Images = images, dying{images, kill}
	}
	e, err := engine.New(o)
	if err != nil {
		return err
	}
	s := build.New(e, b)
	go func() { _ = e.Run(context.Background(), s.Resume) }()
	if images != nil {
		if err := e.WaitReady(context.Background()); err != nil {
			return err
		}
		return crashDockerfile(s)
	}
	_, err = s.Build(context.Background(), image.Job{
		Name: "test", Base: img, Steps: crashSteps(), Log: io.Discard, Report: func(string, string, float64) {},
	})
	return err
}

func crashSteps() []entry.Step {
	return []entry.Step{sh("echo one > /opt/one"), sh("echo two > /opt/two")}
}

func killAt(t *testing.T, h *house, point string) {
	t.Helper()
	program, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, program, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it says where it is, and is not taken for killed at the point
	cmd.Env = append(os.Environ(), crashDir+"="+h.dir, crashPoint+"="+point, crashAgent+"="+agent,
		"SANDPIT_TEST_CRASH_DIGEST="+h.base.Digest, "SANDPIT_TEST_CRASH_ROOT="+h.base.Root)
	out, err := cmd.CombinedOutput()
	ee, ok := errors.AsType[*exec.ExitError](err)
	if !ok || ee.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the server was not killed at %s: %v\n%s", point, err, out)
	}
}

func has(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}
