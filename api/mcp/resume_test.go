// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/internal/mcpbridge"
	"sandpit.dev/sandbox"
)

// wire is a way to a server that can be cut.
type wire struct {
	url string

	mu    sync.Mutex
	conns []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme, far, _ := strings.Cut(to, "://")
	w := &wire{url: scheme + "://" + l.Addr().String()}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", far)
			if err != nil {
				_ = in.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, in, out)
			w.mu.Unlock()
			for from, to := range map[net.Conn]net.Conn{in: out, out: in} {
				wg.Go(func() {
					_, _ = io.Copy(to, from)
					_, _ = in.Close(), out.Close()
				})
			}
		}
	})
	return w
}

// cut breaks every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// TestTheBridgeGoesOnWhereAConnectionBroke shows that a call whose connection breaks in
// the middle, again and again, is answered once, and was carried out once.
func TestTheBridgeGoesOnWhereAConnectionBroke(t *testing.T) {
	t.Parallel()
	h := open(t)
	ok(t, h.alice(), "create_sandbox", arguments{"name": "box"})
	w := newWire(t, h.url)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := mcpbridge.Run(t.Context(), inR, outW, mcpbridge.Options{URL: w.url, Token: "t-alice", HTTP: client(t)})
		_ = outW.Close()
		ended <- err
	}()
	lines := bufio.NewScanner(outR)
	lines.Buffer(nil, 1<<20)
	say := func(line string) {
		if _, err := io.WriteString(inW, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(part string) string {
		for lines.Scan() {
			if strings.Contains(lines.Text(), part) {
				return lines.Text()
			}
		}
		t.Fatalf("%q did not come: %v", part, lines.Err())
		return ""
	}
	say(initialize)
	hear("protocolVersion")
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(strings.Replace(longCall(`"_meta":{"progressToken":1},`), "sleep 600",
		"echo ran >> times; echo begun; for n in 1 2; do while [ ! -e go$n ]; do sleep 0.01; done; echo went $n; done; cat times", 1))
	letGo := func(name string) {
		if _, _, err := h.inside.WriteFile(t.Context(), callers["t-alice"], "box", name, strings.NewReader(""), sandbox.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	hear("begun")
	w.cut()
	letGo("go1")
	hear("went 1") // by another connection
	w.cut()
	letGo("go2")
	answer := hear(`"id":7`)
	if !strings.Contains(answer, "exit 0") || strings.Count(answer, "ran") != 1 {
		t.Errorf("got %s", answer)
	}
	_ = inW.Close()
	if err := <-ended; err != nil {
		t.Error("the bridge:", err)
	}
}
