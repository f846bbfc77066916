// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// tenant is who has a token of one project, and nothing else.
type tenant struct {
	*ours
	server *server
	admin  *client.Client // deletes its token
	id     string         // of the token
	token  string
	http   *http.Client

	project string
	box     string // its sandbox
	cores   float64
	archive []byte // of a snapshot of its sandbox, if an attack has made one

	// of its requests by call
	answered atomic.Int64
	refused  atomic.Int64
}

func (s *session) tenant(ctx context.Context, project string) (*tenant, error) {
	token, err := s.us.client.CreateToken(ctx, v1.CreateToken{Name: "bench-" + rand.Text(), Project: &project})
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 1024, 1024
	http := &http.Client{Transport: transport}
	return &tenant{
		ours:   &ours{client: client.New(s.server.url, token.Secret, client.Options{HTTP: http}), pid: s.us.pid},
		server: s.server, admin: s.us.client, id: token.ID, token: token.Secret, http: http, project: project,
	}, nil
}

// leave deletes all that the tenant has, and its token.
func (t *tenant) leave(ctx context.Context) error {
	defer t.http.CloseIdleConnections()
	var errs []error
	for box, err := range t.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		errs = append(errs, t.client.Delete(ctx, box.ID))
	}
	for snapshot, err := range t.client.Snapshots(ctx, client.SnapshotQuery{}) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		errs = append(errs, t.client.DeleteSnapshot(ctx, snapshot.ID))
	}
	return errors.Join(append(errs, t.admin.DeleteToken(ctx, t.project, t.id))...)
}

// create makes the tenant's sandbox, which ran a command.
func (t *tenant) create(ctx context.Context, network any) error {
	box, _, err := t.client.Create(ctx, v1.CreateSandbox{Network: network, IdleTimeoutSeconds: new(int64(0))})
	if err != nil {
		return err
	}
	t.box, t.cores = box.ID, box.CPUCores
	return t.exec(ctx, box.ID, byArgv)
}

// during runs fn while the attack is under way, which it begins and ends.
func (t *tenant) during(ctx context.Context, run func(ctx context.Context, t *tenant, begun func()) error, fn func() error) error {
	attack, end := context.WithCancel(ctx)
	defer end()
	begun, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- run(attack, t, sync.OnceFunc(func() { close(begun) })) }()
	select {
	case err := <-over:
		return fmt.Errorf("the attack ended before it began: %w", err)
	case <-begun:
	}
	err := fn()
	select {
	case early := <-over:
		return errors.Join(err, fmt.Errorf("the attack ended early: %w", early))
	default:
	}
	end()
	return errors.Join(err, <-over)
}

// program runs Python in the tenant's sandbox, from its first line of output on until ctx ends.
func (t *tenant) program(ctx context.Context, text string, begun func()) error {
	var p *client.Process
	ended, err := t.client.ExecStarted(ctx, t.box, v1.Exec{Argv: []string{"python3", "-c", text}, TimeoutSeconds: new(3600.0)},
		func(started *client.Process) { p = started }, func(client.Frame) error { begun(); return nil })
	if ctx.Err() == nil {
		if err == nil {
			err = fmt.Errorf("it ended with %s, cause %q", number(ended.ExitCode), ended.Cause)
		}
		return err
	}
	if p == nil {
		return nil
	}
	return p.Kill(context.WithoutCancel(ctx))
}

// relentless makes requests by n clients, each one after the other, until ctx ends. What is
// not answered as asked counts as refused, and is asked for again a moment later.
func (t *tenant) relentless(ctx context.Context, n int, ask func(ctx context.Context) error, begun func()) error {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				err := ask(ctx)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					t.refused.Add(1)
					_ = sleep(ctx, 5*time.Millisecond)
				default:
					t.answered.Add(1)
				}
			}
		})
	}
	begun()
	all.Wait()
	return nil
}

// call sends one request with the tenant's token, or by a stranger, and reads the answer.
func (t *tenant) call(ctx context.Context, method, path string, header http.Header, body io.Reader, stranger bool) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.server.url+path, body)
	if err != nil {
		return nil, err
	}
	for name, v := range header {
		req.Header[name] = v
	}
	if !stranger {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return resp.Header, fmt.Errorf("%s %.80s: %s: %s", method, path, resp.Status, why)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.Header, err
}
