// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"sandpit.dev/internal/dockerd"
	"sandpit.dev/internal/leaktest"
)

// engine is Docker's, started for a run: see package dockerd. It is lent sandpit's own root as its image, so that both
// read the same files from the same page cache, and nothing has to be unpacked.
type engine struct {
	*dockerd.Engine
	version string
	client  *http.Client
	rest    time.Duration // how long it is left alone before it is looked at
}

const engineImage = "sandpit-bench"

// As the docker runtime names and labels an image that it has loaded.
const (
	loadedImages = "localhost/sandpit/image"
	loadedLabel  = "dev.sandpit.image"
)

// engineShare is one engine for all peers that need one.
type engineShare struct {
	mu    sync.Mutex
	it    *engine
	users int
}

// open returns the engine, started if it is not there; each user closes it once.
func (s *engineShare) open(ctx context.Context, parts peerParts) (*engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.it == nil {
		e, err := startEngine(ctx, parts)
		if err != nil {
			return nil, err
		}
		s.it = e
	}
	s.users++
	return s.it, nil
}

func (s *engineShare) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	e := s.it
	s.it = nil
	return e.close()
}

func startEngine(ctx context.Context, parts peerParts) (_ *engine, err error) {
	started, err := dockerd.Start(ctx, dockerd.Options{Dir: parts.dir, Group: parts.group, Programs: parts.programs})
	if err != nil {
		return nil, err
	}
	e := &engine{Engine: started, rest: calm, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", started.Socket)
		},
	}}}
	// It also has the name by which sandpit's docker runtime finds it loaded.
	img := dockerd.Image{
		Root: parts.image.Root, Names: []string{engineImage, loadedImages + ":" + strings.TrimPrefix(parts.image.Digest, "sha256:")},
		Labels: map[string]string{loadedLabel: parts.image.Digest},
	}
	if err := errors.Join(e.hear(ctx), e.Lend(ctx, img)); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// hear asks the engine what it is.
func (e *engine) hear(ctx context.Context) error {
	var v struct {
		Version    string
		Components []struct{ Name, Version string }
	}
	if err := e.call(ctx, http.MethodGet, "/version", nil, &v); err != nil {
		return err
	}
	e.version = "Docker Engine " + v.Version
	for _, c := range v.Components {
		if c.Name == "containerd" || c.Name == "runc" {
			e.version += ", " + c.Name + " " + c.Version
		}
	}
	return nil
}

// cpu returns the processor time of all that ever ran in the engine's namespace,
// containers included, to a tick of 10 ms for each process that lives.
func (e *engine) cpu() (time.Duration, error) {
	sum, err := leaktest.CPU(e.PID)
	if err != nil {
		return 0, err
	}
	alive, err := leaktest.Scope{Servers: []int{e.PID}}.Processes()
	if err != nil {
		return 0, err
	}
	for _, p := range alive {
		if used, err := leaktest.CPU(p.PID); err == nil { // else it ended meanwhile
			sum += used
		}
	}
	return sum, nil
}

// metered runs fn, and gives the processor time that it cost the engine.
func (e *engine) metered(fn func() error) (time.Duration, error) {
	before, err := e.cpu()
	if err != nil {
		return 0, err
	}
	if err := fn(); err != nil {
		return 0, err
	}
	after, err := e.cpu()
	return max(0, after-before), err
}

// close ends all, and removes what is outside of the run's directory.
func (e *engine) close() error {
	e.client.CloseIdleConnections()
	return e.Close()
}

// call sends a request with a body of JSON, if there is any, and reads the answer
// into out, if that is not nil.
func (e *engine) call(ctx context.Context, method, path string, in, out any) error {
	if in == nil {
		return e.send(ctx, method, path, "", http.NoBody, out)
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return e.send(ctx, method, path, "application/json", bytes.NewReader(b), out)
}

func (e *engine) send(ctx context.Context, method, path, kind string, body io.Reader, out any) error {
	b, err := e.read(ctx, method, path, kind, body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// read sends a request and returns the answer's body.
func (e *engine) read(ctx context.Context, method, path, kind string, body io.Reader) (_ []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(b))
	}
	return b, nil
}
