// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/keeper"
	"sandpit.dev/agent/server/kept"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

// BenchmarkExec is a warm round trip: start, the output, the result.
func BenchmarkExec(b *testing.B) {
	dir, logs := b.TempDir(), b.TempDir()
	logDir, err := os.Open(logs)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "workspace"), 0o755); err != nil {
		b.Fatal(err)
	}
	srv := server.New(server.Options{User: view.Plain(view.Identity{Name: "sandbox", Home: "/"}), Log: logDir, Dir: dir})
	socket, err := os.MkdirTemp("", "agent")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(socket)
	l, err := net.Listen("unix", filepath.Join(socket, "s"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	defer func() { cancel(); <-done; _ = srv.Close() }()
	c := agent.NewClient(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	})
	program := "/bin/true"
	if s := os.Getenv("SANDPIT_BENCH_PROGRAM"); s != "" {
		program = s
	}
	var secrets [][]byte
	for i := range 8 {
		secrets = append(secrets, fmt.Appendf(nil, "%08d-%032x", i*7919, uint64(i+1)*0x9e3779b97f4a7c15))
	}
	for name, redact := range map[string][][]byte{"": nil, "Masked": secrets} {
		b.Run("Program"+name, func(b *testing.B) {
			for b.Loop() {
				p, err := c.Start(ctx, agent.Command{ID: sandbox.NewProcessID(), Argv: []string{program}, Redact: redact})
				if err != nil {
					b.Fatal(err)
				}
				if o := follow(p); o.err != nil || o.res.ExitCode != 0 {
					b.Fatal(o)
				}
			}
		})
	}
	b.Run("Ping", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Ping(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, redact := range map[string][][]byte{"": nil, "Masked": secrets} {
		b.Run("Output"+name, func(b *testing.B) {
			const size = 32 << 20
			b.SetBytes(size)
			for b.Loop() {
				p, err := c.Start(ctx, agent.Command{
					ID: sandbox.NewProcessID(), Argv: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}, MaxStdout: size, Redact: redact,
				})
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for {
					f, err := p.Next(ctx)
					if err != nil {
						break
					}
					n += len(f.Data)
				}
				_ = p.Close()
				if n != size {
					b.Fatal(n, p.Result())
				}
			}
		})
	}
}

// BenchmarkExecKept is a warm round trip where each command has a keeper, and where none has, in turn.
func BenchmarkExecKept(b *testing.B) {
	clients := make(map[bool]*agent.Client)
	for _, kept := range []bool{false, true} {
		dir := b.TempDir()
		logs, err := os.Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "workspace"), 0o755); err != nil {
			b.Fatal(err)
		}
		o := server.Options{User: view.Plain(view.Identity{Name: "sandbox", Home: "/"}), Log: logs, Dir: dir}
		if kept {
			if !keeper.Works() {
				b.Skip("keepers are written for amd64 alone")
			}
			o.Groups = keeper.Groups()
		}
		srv := server.New(o)
		l, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ctx, l) }()
		defer func() { cancel(); <-done; _ = srv.Close(); _ = logs.Close() }()
		clients[kept] = agent.NewClient(func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
		})
	}
	took := make(map[bool][]time.Duration)
	for b.Loop() {
		for kept, c := range clients {
			began := time.Now()
			p, err := c.Start(b.Context(), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"/bin/true"}})
			if err != nil {
				b.Fatal(err)
			}
			if o := follow(p); o.err != nil || o.res.ExitCode != 0 {
				b.Fatal(o)
			}
			took[kept] = append(took[kept], time.Since(began))
		}
	}
	for kept, name := range map[bool]string{false: "alone-ns", true: "kept-ns"} {
		slices.Sort(took[kept])
		b.ReportMetric(float64(took[kept][len(took[kept])/2].Nanoseconds()), name)
	}
}

// BenchmarkExecOfProcessOne is a warm round trip to an agent that is process 1, where the
// kernel reaps, and where the agent does.
func BenchmarkExecOfProcessOne(b *testing.B) {
	skiptest.WithoutRoot(b, "it makes namespaces")
	groups, n := cgroupDir(b), 0
	for name, reaps := range map[string]bool{"KernelReaps": false, "AgentReaps": true} {
		b.Run(name, func(b *testing.B) {
			if !reaps && !kept.Works() {
				b.Skip("Linux keeps the status of who was reaped since 6.15")
			}
			n++
			c := startInit(b, filepath.Join(groups, fmt.Sprint(n)), reaps)
			for b.Loop() {
				p, err := c.Start(b.Context(), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"/bin/true"}})
				if err != nil {
					b.Fatal(err)
				}
				if o := follow(p); o.err != nil || o.res.ExitCode != 0 {
					b.Fatal(o)
				}
			}
		})
	}
}
