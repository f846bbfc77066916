// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
)

func TestApart(t *testing.T) {
	piece := func(of byte, text string) string { return string([]byte{of, 0, 0, 0, 0, 0, 0, byte(len(text))}) + text }
	out, said, err := apart([]byte(piece(1, "one ") + piece(2, "why") + piece(1, "two") + piece(1, "")))
	if err != nil || out != "one two" || said != "why" {
		t.Errorf("got %q, %q, %v", out, said, err)
	}
	for name, raw := range map[string]string{
		"a header that ends":         "\x01\x00\x00",
		"a piece that ends":          piece(1, "whole")[:10],
		"an output that there isn't": piece(3, "x"),
		"a length beyond all":        "\x01\x00\x00\x00\xff\xff\xff\xffx",
		"no stream":                  "HTTP/1.1 200 OK",
	} {
		if out, _, err := apart([]byte(raw)); err == nil {
			t.Errorf("%s: got %q", name, out)
		}
	}
}

// engineFor starts an Engine for a test, and builds what is measured on it.
func engineFor(t *testing.T) (*engine, peerParts) {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes namespaces")
	parts := testParts(t, "sandpit_docker", imagetest.Python(t), mayFetch("docker"))
	if err := os.MkdirAll(parts.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := parts.engine.open(t.Context(), parts)
	if err != nil && !parts.programs.Fetch && strings.HasPrefix(err.Error(), "not installed") {
		t.Skipf("no Engine: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := parts.engine.close(); err != nil {
			t.Error(err)
		}
		gone(t, parts)
	})
	return e, parts
}

// sessionOf is a run of few repetitions, of which nothing may fail.
func sessionOf(t *testing.T, parts peerParts) *session {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(parts.dir), "run-")
	if err != nil {
		t.Fatal(err)
	}
	s := &session{o: Options{Program: parts.program, Images: parts.images, Pairs: 2}, dir: dir, out: &Report{Missing: map[string]string{}}}
	if s.allow, err = hostAddress(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, failure := range s.out.Failures {
			t.Error(failure)
		}
	})
	return s
}

// The parts do on a real Engine what they do in a run, a few times each.
func TestPartsOnAnEngine(t *testing.T) {
	e, parts := engineFor(t)
	e.rest = 200 * time.Millisecond
	t.Run("Cycles", func(t *testing.T) { testCycles(t, sessionOf(t, parts), e) }) // others would be told as left
	first := sessionOf(t, parts)
	native, err := startServer(t.Context(), parts.program, first.dir, parts.images, 0, first.allow)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := native.close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	within := func(name string, run func(t *testing.T, s *session)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessionOf(t, parts)
			s.us = &ours{client: native.client, pid: native.cmd.Process.Pid}
			run(t, s)
		})
	}
	within("Start", func(t *testing.T, s *session) {
		d, err := s.dockerStart(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		sides(t, d.First, Plain, Sockets, Pooled)
		sides(t, d.Started, Plain, Sockets)
		if d.Answers == nil || d.Answers.OK != d.Answers.N {
			t.Errorf("the agent answers: %+v", d.Answers)
		}
	})
	within("Execs", func(t *testing.T, s *session) {
		d, err := s.dockerExecs(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		sides(t, d.Warm, Plain, Sockets)
		for _, h := range []Held{d.Ours, d.Theirs} {
			if h.MemoryBefore < 1 || h.MemoryAfter < 1 || h.DescriptorsBefore < 3 || h.DescriptorsAfter < 3 {
				t.Errorf("the Engine holds %+v", h)
			}
		}
	})
	within("Stream", func(t *testing.T, s *session) {
		d, err := s.dockerStream(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		sides(t, d.Warm, Plain, Sockets, Streamed)
		sides(t, d.AtOnce, Plain, Sockets, Streamed)
		if d.OneBeside.Quiet.N != 2*besideOnes || d.Download.Beside.N != 2*2 {
			t.Errorf("%+v", d)
		}
	})
	within("Disks", func(t *testing.T, s *session) {
		d, err := s.dockerDisks(t.Context(), e, []int{3})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Sizes[0].Verbs() {
			if strings.HasPrefix(c.What, "rollback") {
				sides(t, c, Native, Sockets)
				continue
			}
			sides(t, c, Plain, Sockets, Native)
		}
	})
	within("Gate", func(t *testing.T, s *session) {
		d, err := s.dockerGate(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		sides(t, d.Down, Native, Sockets, Streamed)
		sides(t, d.Up, Native, Sockets, Streamed)
	})
	within("Alive", func(t *testing.T, s *session) {
		d, err := s.dockerAlive(t.Context(), e, 2)
		if err != nil {
			t.Fatal(err)
		}
		if d.Alive != 2 || d.AtOnce.OK != 2 {
			t.Errorf("%+v", d)
		}
	})
	within("Container", func(t *testing.T, s *session) {
		c, err := e.startContainer(t.Context(), engineImage, usual())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.put(t.Context(), workFile, workProgram); err != nil {
			t.Fatal(err)
		}
		if out, err := c.exec(t.Context(), "1000", environ(workEnv), "/usr/bin/python3", workFile, "kinds"); err != nil || !strings.HasPrefix(out, "cpu ") {
			t.Errorf("work in a container: %q, %v", out, err)
		}
		if out, err := c.exec(t.Context(), "1000", nil, "sh", "-c", "echo no; echo why >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "3: why") {
			t.Errorf("a command that fails: %q, %v", out, err)
		}
		if err := c.remove(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// sides fails the test unless these have all worked.
func sides(t *testing.T, c Compared, want ...string) {
	t.Helper()
	var got []string
	for _, side := range c.Sides {
		got = append(got, side.Who)
		if side.Figures.OK != side.Figures.N || side.Figures.Min <= 0 {
			t.Errorf("%s, %s: %+v", c.What, side.Who, side.Figures)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: by %v, want %v", c.What, got, want)
	}
}

// Lives leave nothing, and what is left is told: here a stranger is, on purpose.
func testCycles(t *testing.T, s *session, e *engine) {
	us, err := s.startDockerServer(t.Context(), e, "left", 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := us.close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	before, err := us.residue(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.startContainer(t.Context(), engineImage, usual())
	if err != nil {
		t.Fatal(err)
	}
	image, err := c.commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left, err := us.leftOf(t.Context(), e, before)
	if want := []string{"container " + c.id, "image " + image}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v; want %v", left, err, want)
	}
	if err := errors.Join(c.remove(t.Context()), e.removeImage(t.Context(), image)); err != nil {
		t.Error(err)
	}
	d, err := s.dockerCycles(t.Context(), e, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range d.Ways {
		if want := map[string]int{Sockets: 2, Streamed: 1}[way.Who]; way.Life.OK != want || way.Left == nil || len(way.Left) > 0 {
			t.Errorf("%+v, lives %+v", way, way.Life)
		}
	}
}
