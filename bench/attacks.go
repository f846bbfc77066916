// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// attack is what a tenant does to the others, by its own token and its own sandbox alone.
type attack struct {
	name    string // of the option
	about   string
	network any                                        // of the attacker's sandbox; nil: as it comes
	prepare func(ctx context.Context, t *tenant) error // once
	// run attacks until ctx ends, and calls begun when it is under way.
	run func(ctx context.Context, t *tenant, begun func()) error
}

// inside is an attack by a program alone.
func inside(text string) func(context.Context, *tenant, func()) error {
	return func(ctx context.Context, t *tenant, begun func()) error { return t.program(ctx, text, begun) }
}

// attacks are those of which one was found that other tenants could feel, each at the bounds
// that a server has.
var attacks = []attack{
	// The control: what a busy machine alone costs, since the clients of an attack run on it, too.
	{name: "control", about: "a busy loop a core, outside of every sandbox", run: busyMachine},
	{name: "cpu", about: "eight busy loops", run: inside(`import os
for _ in range(8):
    if os.fork() == 0:
        while True: pass
print(flush=True); os.wait()`)},
	{name: "forks", about: "a storm of forks", run: inside(`import os
print(flush=True)
for _ in range(3): os.fork()
while True:
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)`)},
	{name: "memory", about: "memory taken and given back", run: inside(`import mmap
print(flush=True)
while True:
    m = mmap.mmap(-1, 400 << 20)
    for at in range(0, len(m), 4096): m[at] = 1
    m.close()`)},
	{name: "disk", about: "a disk written and flushed", run: inside(`import os
f = os.open('big', os.O_CREAT | os.O_WRONLY)
print(flush=True)
while True:
    for at in range(0, 200 << 20, 1 << 20):
        os.pwrite(f, os.urandom(4096) * 256, at)
        os.fsync(f)`)},
	{name: "output", about: "output without end", run: func(ctx context.Context, t *tenant, begun func()) error {
		p, err := t.client.StartProcess(ctx, t.box, v1.StartProcess{Argv: []string{"python3", "-c", endlessOutput}})
		if err != nil {
			return err
		}
		begun()
		<-ctx.Done()
		return p.Kill(context.WithoutCancel(ctx)) // an error, if it has ended
	}},
	{name: "stream", about: "output without end that a client takes", run: inside(endlessOutput)},
	{name: "sockets", about: "sockets that are filled", run: inside(`import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
print(flush=True)
while True:
    kept = []
    try:
        for _ in range(400):
            l = socket.create_server(('127.0.0.1', 0))
            c = socket.create_connection(l.getsockname()); kept += [c, l.accept()[0]]; c.setblocking(False); l.close()
            try:
                while True: c.send(b'x' * 1000000)
            except BlockingIOError: pass
    except OSError: pass
    for s in kept: s.close()`)},
	{name: "storm", about: "a storm of files", run: inside(fileStorm)},
	{name: "watches", about: "a storm of files under 32 watches", run: func(ctx context.Context, t *tenant, begun func()) error {
		for n := range 32 {
			w, err := t.client.Watch(ctx, t.box, "", client.WatchOptions{Recursive: true})
			if err != nil {
				return err
			}
			defer func() { _ = w.Close() }()
			if n%2 == 0 { // the others are never read
				go func() {
					for err := error(nil); err == nil; {
						_, err = w.Next()
					}
				}()
			}
		}
		return t.program(ctx, fileStorm, begun)
	}},
	{name: "followers", about: "400 followers of a terminal", run: func(ctx context.Context, t *tenant, begun func()) error {
		p, err := t.client.StartProcess(ctx, t.box, v1.StartProcess{Argv: []string{"yes"}, Tty: new(true)})
		if err != nil {
			return err
		}
		defer func() { _ = p.Kill(context.WithoutCancel(ctx)) }()
		const followers = 400
		var asked atomic.Int64
		return t.relentless(ctx, followers, func(ctx context.Context) error {
			f, err := t.client.AttachTerminal(ctx, t.box, p.ID(), 0)
			if asked.Add(1) == followers { // it is the followers that are measured, not their asking
				begun()
			}
			if err != nil {
				return errors.Join(err, sleep(ctx, 10*time.Second))
			}
			t.answered.Add(1)
			defer context.AfterFunc(ctx, func() { _ = f.Close() })()
			_, err = io.Copy(io.Discard, f)
			return err
		}, func() {})
	}},
	{name: "refusals", about: "connections that are refused", network: v1.NetworkPolicy{Mode: "restricted", AllowDomains: []string{"allowed.example"}}, run: runRefusals},
	{name: "imports", about: "imports, slow ones and many", prepare: prepareImport, run: runImports},
	{name: "listings", about: "listings of 20,000 long names", prepare: prepareListing, run: func(ctx context.Context, t *tenant, begun func()) error {
		return t.relentless(ctx, 8, func(ctx context.Context) error {
			_, err := t.call(ctx, http.MethodGet, "/v1/sandboxes/"+t.box+"/files?path=/workspace/d&limit=100000&detail=true", nil, nil, false)
			return err
		}, begun)
	}},
	{name: "answers", about: "commands of 16 MB of zeros", run: func(ctx context.Context, t *tenant, begun func()) error {
		body := `{"argv": ["head", "-c", "16777216", "/dev/zero"], "max_output_bytes": 16777216}`
		return t.relentless(ctx, 4, func(ctx context.Context) error {
			_, err := t.call(ctx, http.MethodPost, "/v1/sandboxes/"+t.box+"/exec", http.Header{"Content-Type": {"application/json"}}, strings.NewReader(body), false)
			return err
		}, begun)
	}},
	{name: "batches", about: "MCP batches of 50 lists of tools", run: runBatches},
	{name: "strangers", about: "requests of strangers", run: func(ctx context.Context, t *tenant, begun func()) error {
		path := "/" + strings.Repeat("A", 60_000)
		return t.relentless(ctx, 16, func(ctx context.Context) error {
			_, err := t.call(ctx, http.MethodGet, path, nil, nil, true)
			return err
		}, begun)
	}},
	{name: "commands", about: "commands of four clients", run: func(ctx context.Context, t *tenant, begun func()) error {
		return t.relentless(ctx, 4, func(ctx context.Context) error { return t.exec(ctx, t.box, byArgv) }, begun)
	}},
}

// busyMachine keeps every core busy by processes that have nothing to do with the server.
func busyMachine(ctx context.Context, _ *tenant, begun func()) error {
	loops, ctx := errgroup.WithContext(ctx)
	for range runtime.NumCPU() {
		loops.Go(func() error {
			runtime.LockOSThread() // the loop is killed as this thread ends
			defer runtime.UnlockOSThread()
			loop := exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done")
			loop.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := loop.Run(); ctx.Err() == nil {
				return fmt.Errorf("a busy loop ended: %w", err)
			}
			return nil
		})
	}
	begun()
	return loops.Wait()
}

// endlessOutput writes as fast as it is read.
const endlessOutput = `import os
os.write(1, b'\n')
while True: os.write(1, b'x' * 65535 + b'\n')`

// fileStorm makes and removes files.
const fileStorm = `import os
os.makedirs('storm', exist_ok=True); os.chdir('storm')
print(flush=True)
while True:
    for n in range(200): os.close(os.open('f%d' % n, os.O_CREAT | os.O_WRONLY))
    for n in range(200): os.unlink('f%d' % n)`

// refusedStorm asks for what no policy allows: connections, and names.
const refusedStorm = `import os, socket
print(flush=True)
ask = b'\1\2\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1'
names = os.fork() == 0
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.setblocking(False)
while True:
    try:
        if names: u.sendto(ask, ('127.0.0.1', 53))
        else: socket.create_connection(('192.0.2.1', 80), 5).close()
    except OSError: pass`

// runRefusals fails if the server has refused no name or no connection.
func runRefusals(ctx context.Context, t *tenant, begun func()) error {
	if err := t.program(ctx, refusedStorm, begun); err != nil {
		return err
	}
	log, err := t.client.NetworkLog(context.WithoutCancel(ctx), t.box)
	if err != nil {
		return err
	}
	refused := make(map[string]int64)
	for _, e := range log.Items {
		if !e.Allowed {
			refused[e.Protocol] += e.Count
		}
	}
	if refused["dns"] == 0 || refused["tcp"] == 0 {
		return fmt.Errorf("%d names and %d connections were refused, want some of each", refused["dns"], refused["tcp"])
	}
	return nil
}

// prepareImport makes an archive of many files of no bytes.
func prepareImport(ctx context.Context, t *tenant) error {
	if err := t.grow(ctx, t.box, 20_000); err != nil {
		return err
	}
	snapshot, err := t.client.Snapshot(ctx, t.box, v1.CreateSnapshot{})
	if err != nil {
		return err
	}
	r, err := t.client.ExportSnapshot(ctx, snapshot.ID)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	t.archive, err = io.ReadAll(r)
	return err
}

// runImports sends archives at the pace of the network, and of others half at once and then a
// byte now and then.
func runImports(ctx context.Context, t *tenant, begun func()) error {
	var slow sync.WaitGroup
	defer slow.Wait()
	send := func(ctx context.Context, body io.Reader) error {
		_, err := t.call(ctx, http.MethodPost, "/v1/snapshots/import", http.Header{"Content-Type": {v1.SnapshotType}}, body, false)
		return err
	}
	slow.Go(func() {
		_ = t.relentless(ctx, 2, func(ctx context.Context) error {
			half := len(t.archive) / 2
			return send(ctx, io.MultiReader(bytes.NewReader(t.archive[:half]), &trickle{ctx, bytes.NewReader(t.archive[half:])}))
		}, func() {})
	})
	return t.relentless(ctx, 2, func(ctx context.Context) error { return send(ctx, bytes.NewReader(t.archive)) }, begun)
}

// trickle reads a byte now and then.
type trickle struct {
	ctx context.Context
	r   io.Reader
}

func (t *trickle) Read(p []byte) (int, error) {
	if err := sleep(t.ctx, 100*time.Millisecond); err != nil {
		return 0, err
	}
	return t.r.Read(p[:1])
}

// prepareListing makes links to names that need many bytes as JSON.
func prepareListing(ctx context.Context, t *tenant) error {
	return t.exec(ctx, t.box, v1.Exec{Argv: []string{"python3", "-c", `import os
os.mkdir('d'); os.chdir('d')
for n in range(20000): os.symlink(b'\xff' * 3800, str(n))`}})
}

// runBatches asks for the tools many times in one body, each client in a session of its own.
func runBatches(ctx context.Context, t *tenant, begun func()) error {
	calls := make([]string, 50)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i+2)
	}
	batch := "[" + strings.Join(calls, ",") + "]"
	sessions := make(chan http.Header, 4)
	for range cap(sessions) {
		header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		h, err := t.call(ctx, http.MethodPost, "/mcp", header, strings.NewReader(initializeBatches), false)
		if err != nil {
			return err
		}
		header.Set("Mcp-Session-Id", h.Get("Mcp-Session-Id"))
		if _, err := t.call(ctx, http.MethodPost, "/mcp", header, strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), false); err != nil {
			return err
		}
		sessions <- header
	}
	return t.relentless(ctx, cap(sessions), func(ctx context.Context) error {
		header := <-sessions
		defer func() { sessions <- header }()
		_, err := t.call(ctx, http.MethodPost, "/mcp", header, strings.NewReader(batch), false)
		return err
	}, begun)
}

// initializeBatches opens a session of the last protocol that has batches.
const initializeBatches = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
