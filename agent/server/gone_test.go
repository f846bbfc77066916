// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// telling is a listener that tells of each connection that the agent has closed.
type telling struct {
	net.Listener
	closed chan struct{}
}

func (l telling) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &toldConn{c.(*net.UnixConn), l.closed}, nil
}

type toldConn struct {
	*net.UnixConn
	closed chan struct{}
}

func (c *toldConn) Close() error {
	err := c.UnixConn.Close()
	if err == nil {
		c.closed <- struct{}{}
	}
	return err
}

// A caller that gave up on an agent that was stopped was told that its call failed. All that
// it sent is in the socket still when the agent goes on.
func TestWhatACallerGaveUpOnIsNotDone(t *testing.T) {
	t.Parallel()
	call := func(parts []byte, req wire.Request) []byte {
		b, err := wire.AppendJSON(wire.AppendHello(nil), wire.Call, req)
		if err != nil {
			t.Fatal(err)
		}
		return append(b, parts...)
	}
	end := wire.Append(nil, wire.End, nil)
	body := append(wire.Append(nil, wire.Data, []byte("new")), end...)
	id := sandbox.NewProcessID()
	for name, one := range map[string]struct {
		sent  []byte
		check func(t *testing.T, c *agent.Client, dir string)
	}{
		"AHeldStart": {call(end, wire.Request{Op: wire.OpStart, ID: id, Start: &wire.Start{Shell: "true", Held: true}}), neverBegan(id)},
		"AStart":     {call(nil, wire.Request{Op: wire.OpStart, ID: id, Start: &wire.Start{Shell: "true"}}), neverBegan(id)},
		"AStartWithInput": {call(wire.Append(nil, wire.Data, []byte("in")), wire.Request{Op: wire.OpStart, ID: id, Start: &wire.Start{Shell: "cat", StdinSize: 2}}),
			neverBegan(id)},
		"AnUpload":   {call(body, wire.Request{Op: wire.OpWrite, Path: "kept", Size: 3}), untouched},
		"ARemoval":   {call(nil, wire.Request{Op: wire.OpRemove, Path: "kept"}), untouched},
		"AMove":      {call(nil, wire.Request{Op: wire.OpMove, Path: "kept", To: "moved"}), untouched},
		"ADirectory": {call(nil, wire.Request{Op: wire.OpMkdir, Path: "dir"}), untouched},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "workspace"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "workspace/kept"), []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
			socket, err := os.MkdirTemp("", "agent") // t.TempDir is too long for a socket's name
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(socket)
			l, err := net.Listen("unix", filepath.Join(socket, "s"))
			if err != nil {
				t.Fatal(err)
			}
			caller, err := net.Dial("unix", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := caller.Write(one.sent); err != nil {
				t.Fatal(err)
			}
			_ = caller.Close()

			logs, err := os.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer logs.Close()
			srv := server.New(server.Options{
				User: view.Plain(view.Identity{Name: "sandbox", UID: os.Geteuid(), GID: os.Getegid(), Home: "/workspace"}), Log: logs, Dir: dir,
			})
			ctx, cancel := context.WithCancel(context.Background())
			closed, served := make(chan struct{}, 8), make(chan error, 1)
			go func() { served <- srv.Serve(ctx, telling{l, closed}) }()
			<-closed
			one.check(t, agent.NewClient(func(ctx context.Context) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
			}), filepath.Join(dir, "workspace"))
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func neverBegan(id string) func(*testing.T, *agent.Client, string) {
	return func(t *testing.T, c *agent.Client, _ string) {
		t.Helper()
		if rec, err := c.Process(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("the command: %+v, %v", rec, err)
		}
	}
}

func untouched(t *testing.T, _ *agent.Client, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "kept" {
		t.Errorf("in the workspace: %v", entries)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || string(b) != "old" {
		t.Errorf("the file: %q, %v", b, err)
	}
}
