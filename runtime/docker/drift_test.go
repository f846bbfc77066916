// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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

// A container that was made by other rules is told of, by the log and by doctor, and goes on with its
// disk: it is neither removed nor refused.
func TestDriftIsToldAndTakesNothingAway(t *testing.T) {
	h := dockerdtest.New(t)
	dir, namespace := t.TempDir(), newNamespace()
	var log bytes.Buffer
	with := func(ociRuntime string) *docker.Driver {
		log.Reset()
		return openWith(t, docker.Options{
			Dir: dir, Namespace: namespace, Engine: engineapi.Environment{Host: "unix://" + h.Socket()}, Runtime: ociRuntime, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
	}
	const words = "other rights"
	spec := runtime.Spec{ID: sandbox.NewID(), Image: tiny(t, "drift"), Hostname: "box", Limits: sandbox.DefaultLimits()}
	answers := func(i runtime.Instance) {
		t.Helper()
		if _, err := agent.NewClient(i.Dial).Ping(t.Context()); err != nil {
			t.Fatalf("its agent: %v", err)
		}
	}

	d := with("")
	made, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	answers(made)
	engine := found(t, h)
	list, err := engine.ListContainers(t.Context(), "dev.sandpit.sandbox="+string(spec.ID))
	if err != nil || len(list) != 1 {
		t.Fatalf("its containers are %+v, %v", list, err)
	}
	container := list[0].ID
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	d = with("runc") // which is the default by its name: other words, and the fingerprint is of the words
	again, err := d.Open(t.Context(), made.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), words) || !strings.Contains(log.String(), string(spec.ID)) {
		t.Errorf("the log says %s", log.String())
	}
	answers(again)
	log.Reset()
	for _, err := range []error{again.Stop(t.Context(), 0), again.Start(t.Context(), spec)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(log.String(), words) {
		t.Errorf("at a start the log says %q", log.String())
	}
	answers(again)
	if c, err := engine.InspectContainer(t.Context(), container); err != nil || !c.State.Running {
		t.Errorf("the container that it had is %+v, %v", c.State, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	kind := docker.Kind{Host: "unix://" + h.Socket(), Runtime: "runc"}
	inspect := func(mend bool) []runtime.Finding {
		t.Helper()
		got, err := kind.Inspect(t.Context(), runtime.Place{Dir: dir, Namespace: namespace}, func(sandbox.ID) string { return "" }, mend)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := inspect(false); len(got) != 1 || got[0].Name != "sandbox "+string(spec.ID) || !strings.Contains(got[0].What, words) {
		t.Errorf("doctor finds %+v", got)
	}
	if got := inspect(true); len(got) != 0 {
		t.Errorf("a repair finds %+v, which it has no means to mend", got)
	}

	// By the rules that it was made by there is nothing to tell.
	d = with("")
	last, err := d.Open(t.Context(), made.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), words) {
		t.Errorf("the log says %s", log.String())
	}
	for _, err := range []error{last.Remove(t.Context()), d.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
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
