// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// crowds are what one sandbox does, or is asked for, many times at once. begin returns once it
// is under way, and goes on until ctx ends; done counts what was done.
var crowds = []struct {
	name  string
	needs runtime.Feature
	begin func(ctx context.Context, b *box, all *sync.WaitGroup) (done func() int64)
}{
	{"FollowersOfATerminal", runtime.Isolation, crowdOfFollowers},
	{"ListingsOfLongNames", runtime.Isolation, crowdOfListings},
	{"RefusedConnections", runtime.Network, crowdOfRefusals},
}

// crowdFloods has one sandbox be busy with a crowd, beside which the other's commands and files
// are as they should be.
func crowdFloods(t *testing.T, s *suite) {
	for _, c := range crowds {
		t.Run(c.name+"LeaveTheOthers", func(t *testing.T) {
			s.need(t, c.needs)
			one, two := s.create(t, s.spec()), s.create(t, s.spec())
			ctx, end := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer end()
			done := c.begin(ctx, one, &all)
			before := done()
			for n := range 20 {
				two.worksFully(n)
			}
			if got := done(); got <= before {
				t.Errorf("the crowd had done %d things before, and %d after: it was none", before, got)
			}
		})
	}
}

// worksFully runs a command with some output and writes and reads a file, of which nothing may be
// lost.
func (b *box) worksFully(n int) {
	b.t.Helper()
	const lines = 20_000
	o := b.exec(agent.Command{Shell: fmt.Sprintf("seq %d; exit 7", lines)})
	if got := strings.Count(o.Stdout, "\n"); o.ExitCode != 7 || got != lines || !strings.HasSuffix(o.Stdout, fmt.Sprintf("\n%d\n", lines)) {
		b.t.Errorf("command %d: got exit code %d, cause %q, %d lines; want 7, none, %d", n, o.ExitCode, o.Cause, got, lines)
	}
	path, content := fmt.Sprintf("/workspace/f%d", n), bytes.Repeat([]byte{byte(n)}, 100_000)
	if _, _, err := b.agent.WriteFile(b.t.Context(), path, bytes.NewReader(content), sandbox.WriteFileOptions{}); err != nil {
		b.t.Fatal(err)
	}
	_, r, err := b.agent.ReadFile(b.t.Context(), path, sandbox.ReadFileOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	if err != nil || !bytes.Equal(got, content) {
		b.t.Errorf("file %d: got %d bytes and %v, want the %d that were written", n, len(got), err, len(content))
	}
}

// crowdOfFollowers follows a terminal that never stops, half of it without ever reading.
func crowdOfFollowers(ctx context.Context, b *box, all *sync.WaitGroup) func() int64 {
	const followers = 100
	p, err := b.agent.Start(ctx, agent.Command{
		ID: sandbox.NewProcessID(), Argv: []string{"yes"}, Rolling: true, Terminal: &agent.Terminal{Cols: 80, Rows: 24, Stays: true},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = p.Close() })
	var done atomic.Int64
	for n := range followers {
		f, err := b.agent.Attach(ctx, p.ID(), 0)
		if err != nil {
			b.t.Fatalf("follower %d: %v", n, err)
		}
		all.Go(func() {
			defer func() { _ = f.Close() }()
			for n%2 == 0 {
				if _, err := f.Next(ctx); err != nil {
					return
				}
				done.Add(1)
			}
			<-ctx.Done()
		})
	}
	return done.Load
}

// crowdOfListings lists a directory again and again.
func crowdOfListings(ctx context.Context, b *box, all *sync.WaitGroup) func() int64 {
	const clients, names = 8, 5_000
	b.ok(fmt.Sprintf(`mkdir crowd && cd crowd && python3 -c "
import os
for n in range(%d): os.symlink(b'\xff' * 3800, str(n))"`, names))
	var done atomic.Int64
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				_, err := b.agent.EachFile(ctx, "/workspace/crowd", sandbox.ListFilesOptions{Limit: names}, func(sandbox.FileInfo) error {
					done.Add(1)
					return nil
				})
				if err != nil && ctx.Err() == nil {
					b.t.Errorf("a listing: %v", err)
					return
				}
			}
		})
	}
	return done.Load
}

// crowdOfRefusals asks for connections and names that no policy allows.
func crowdOfRefusals(_ context.Context, b *box, _ *sync.WaitGroup) func() int64 {
	w := b.guarded()
	b.begin(agent.Command{Argv: []string{"python3", "-c", `import os, socket
print('begun', flush=True)
ask = b'\1\2\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1'
names = os.fork() == 0
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.setblocking(False)
while True:
    try:
        if names: u.sendto(ask, ('127.0.0.1', 53))
        else: socket.create_connection(('192.0.2.1', 80), 5).close()
    except OSError: pass`}}, "begun\n")
	return func() int64 {
		entries, n := w.journal.Entries()
		for _, e := range entries {
			n += e.Count
		}
		return n
	}
}
