// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// dials counts the connections that are tried.
func dials(n *atomic.Int32) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			n.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}}
}

// TestWaitingIsToldOnce breaks the connection of a command, ends the server and starts it again.
func TestWaitingIsToldOnce(t *testing.T) {
	t.Parallel()
	var asked, told atomic.Int32
	first := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
			close(first)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"exit_code":7}`)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	srv.Start()
	var tried atomic.Int32
	here := make(chan struct{}, 8)
	c := client.New("http://"+addr, "", client.Options{HTTP: dials(&tried), Waiting: func(err error, until time.Time) {
		if told.Add(1); !fault.Is(err, fault.Unavailable) || !until.After(time.Now()) {
			t.Errorf("told %v, until %v", err, until)
		}
		here <- struct{}{}
	}})
	done := make(chan error, 1)
	go func() {
		<-first
		srv.Close()
		<-here
		for n := tried.Load(); tried.Load() < n+2; { // it goes on in silence
			time.Sleep(time.Millisecond)
		}
		again, err := net.Listen("tcp", addr)
		if err == nil {
			srv = &httptest.Server{Listener: again, Config: &http.Server{Handler: handler}}
			srv.Start()
		}
		done <- err
	}()
	r, err := c.Exec(t.Context(), "box", v1.Exec{Command: new("true")})
	if err != nil || r.ExitCode == nil || *r.ExitCode != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	srv.Close()
	if told.Load() != 1 {
		t.Errorf("told %d times", told.Load())
	}
}

// TestAServerThatWasNeverReached is tried once by everything that gets over one that is gone.
func TestAServerThatWasNeverReached(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *client.Client) error{
		"Exec": func(ctx context.Context, c *client.Client) error {
			_, err := c.Exec(ctx, "box", v1.Exec{Command: new("true")})
			return err
		},
		"Wait": func(ctx context.Context, c *client.Client) error {
			_, err := c.OpenProcess("box", "p").Wait(ctx)
			return err
		},
		"Follow": func(ctx context.Context, c *client.Client) error {
			for _, err := range c.OpenProcess("box", "p").Follow(ctx, client.FollowOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"FollowRun": func(ctx context.Context, c *client.Client) error {
			for _, err := range c.FollowRun(ctx, "run", 0) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil { // no server listens on that port now
				t.Fatal(err)
			}
			var tried atomic.Int32
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := client.New("http://"+l.Addr().String(), "", client.Options{HTTP: dials(&tried), Waiting: func(error, time.Time) { cancel() }})
			if err := call(ctx, c); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v", err)
			}
			if tried.Load() != 1 {
				t.Errorf("tried %d times", tried.Load())
			}
		})
	}
}
