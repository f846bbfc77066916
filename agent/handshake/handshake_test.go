// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package handshake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sockets is both ends of a real connection.
func sockets(t testing.TB) (server, agent net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server, err = net.Dial("unix", l.Addr().String())
	if err == nil {
		agent, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(); _ = agent.Close() })
	for _, nc := range []net.Conn{server, agent} {
		_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	}
	return server, agent
}

// agentSide runs the agent's half, and gives what came of it.
type outcome struct {
	c    *handshake.Conn
	what handshake.Carries
	err  error
}

func agentSide(nc net.Conn, key *handshake.Key) chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		c, what, err := handshake.Agent(nc, key, nil)
		if err != nil {
			_ = nc.Close()
		}
		ended <- outcome{c, what, err}
	}()
	return ended
}

// connected is both ends of a connection that is begun.
func connected(t testing.TB) (server, agent *handshake.Conn) {
	t.Helper()
	s, a := sockets(t)
	key := handshake.NewKey()
	theirs := agentSide(a, key)
	server, err := handshake.Server(s, key, handshake.ManyCalls)
	if err != nil {
		t.Fatal(err)
	}
	got := <-theirs
	if got.err != nil || got.what != handshake.ManyCalls {
		t.Fatal(got)
	}
	return server, got.c
}

func TestBytesArriveBothWays(t *testing.T) {
	server, agent := connected(t)
	for _, n := range []int{0, 1, 4 << 10, 1<<16 - 1, 1 << 16, 3<<20 + 7} {
		text := bytes.Repeat([]byte{byte(n), 1, 2}, n)[:n]
		for _, way := range [][2]*handshake.Conn{{server, agent}, {agent, server}} {
			var sent sync.WaitGroup
			sent.Go(func() {
				if k, err := way[0].Write(text); k != n || err != nil {
					t.Errorf("Write of %d: %d %v", n, k, err)
				}
			})
			got := make([]byte, n)
			if _, err := io.ReadFull(way[1], got); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes did not arrive as they were: %v", n, err)
			}
			sent.Wait()
		}
	}
	_ = agent.Close()
	if n, err := server.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d %v", n, err)
	}
}

// A deadline takes nothing away: what was taken arrives, once.
func TestADeadlineLosesNothing(t *testing.T) {
	server, agent := connected(t)
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	got := make(chan []byte, 1)
	proceed := make(chan struct{})
	go func() {
		<-proceed
		var all []byte
		buf := make([]byte, 50_000)
		for len(all) < len(text) {
			_ = agent.SetReadDeadline(time.Now().Add(time.Millisecond))
			n, err := agent.Read(buf)
			all = append(all, buf[:n]...)
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
		}
		got <- all
	}()
	timeouts := 0
	for rest := text; ; {
		_ = server.SetWriteDeadline(time.Now().Add(time.Millisecond))
		n, err := server.Write(rest)
		rest = rest[n:]
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if timeouts++; timeouts == 1 {
			close(proceed)
		}
	}
	if all := <-got; !bytes.Equal(all, text) {
		t.Errorf("%d bytes arrived, and not those that were sent", len(all))
	}
}

func TestWhoDoesNotKnowTheKeyGetsNothing(t *testing.T) {
	key := handshake.NewKey()
	t.Run("AsTheServer", func(t *testing.T) {
		s, a := sockets(t)
		theirs := agentSide(a, key)
		if _, err := handshake.Server(s, handshake.NewKey(), handshake.OneCall); !errors.Is(err, handshake.ErrRefused) {
			t.Errorf("the stranger: %v", err)
		}
		if got := <-theirs; !errors.Is(got.err, handshake.ErrStranger) {
			t.Errorf("the agent: %v", got.err)
		}
	})
	t.Run("AsTheAgent", func(t *testing.T) {
		s, a := sockets(t)
		go func() { // it takes any proof, and has none
			_, _ = a.Write(append([]byte("sbph\x01"), make([]byte, 32)...))
			_, _ = io.ReadFull(a, make([]byte, 65))
			_, _ = a.Write(make([]byte, 32))
		}()
		if _, err := handshake.Server(s, key, handshake.OneCall); !errors.Is(err, handshake.ErrImpostor) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("OfAnotherProtocol", func(t *testing.T) {
		s, a := sockets(t)
		_, _ = a.Write([]byte(strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 4)))
		if _, err := handshake.Server(s, key, handshake.OneCall); !errors.Is(err, handshake.ErrNoAgent) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("ProofsAreOfTheirBytes", func(t *testing.T) {
		for i := range 65 { // each byte that the server sends
			s, a := sockets(t)
			mine, theirs := sockets(t)
			ended := agentSide(theirs, key)
			go func() { // in between: one bit of one byte
				hello := make([]byte, 37)
				_, _ = io.ReadFull(mine, hello)
				_, _ = a.Write(hello)
				said := make([]byte, 65)
				_, _ = io.ReadFull(a, said)
				said[i] ^= 4
				_, _ = mine.Write(said)
				_, _ = io.Copy(a, mine)
				_ = a.Close()
			}()
			if _, err := handshake.Server(s, key, handshake.OneCall); !errors.Is(err, handshake.ErrRefused) {
				t.Errorf("byte %d: %v", i, err)
			}
			if got := <-ended; !errors.Is(got.err, handshake.ErrStranger) {
				t.Errorf("byte %d: the agent has %v", i, got.err)
			}
		}
	})
}

// recorder is a connection that keeps what its side sent.
type recorder struct {
	net.Conn
	mu   sync.Mutex
	sent []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.sent = append(r.sent, b...)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// What was heard of one connection is no use for another, in either direction.
func TestNothingCanBeReplayed(t *testing.T) {
	key := handshake.NewKey()
	s, a := sockets(t)
	server, agent := &recorder{Conn: s}, &recorder{Conn: a}
	theirs := agentSide(agent, key)
	c, err := handshake.Server(server, key, handshake.OneCall)
	if err != nil {
		t.Fatal(err)
	}
	got := <-theirs
	_, _ = c.Write([]byte("kill all"))
	_, _ = io.ReadFull(got.c, make([]byte, 8))

	t.Run("ToTheAgent", func(t *testing.T) {
		s, a := sockets(t)
		theirs := agentSide(a, key)
		_, _ = s.Write(server.sent)
		if got := <-theirs; !errors.Is(got.err, handshake.ErrStranger) {
			t.Errorf("got %v", got.err)
		}
		if b, _ := io.ReadAll(s); len(b) != 37 {
			t.Errorf("the agent said %d bytes", len(b))
		}
	})
	t.Run("ToTheServer", func(t *testing.T) {
		s, a := sockets(t)
		_, _ = a.Write(agent.sent)
		if _, err := handshake.Server(s, key, handshake.OneCall); !errors.Is(err, handshake.ErrImpostor) {
			t.Errorf("got %v", err)
		}
	})
}

// What a side says is no answer to itself, whoever carries it there.
func TestNothingCanBeReflected(t *testing.T) {
	key := handshake.NewKey()
	t.Run("AnAgentsHelloToAnAgent", func(t *testing.T) {
		s, a := sockets(t)
		theirs := agentSide(a, key)
		hello := make([]byte, 37)
		_, _ = io.ReadFull(s, hello)
		_, _ = s.Write(append(hello, hello...))
		if got := <-theirs; !errors.Is(got.err, handshake.ErrStranger) {
			t.Errorf("the agent takes itself for its server: %v", got.err)
		}
	})
	t.Run("AServersProofToTheServer", func(t *testing.T) {
		s, a := sockets(t)
		go func() {
			_, _ = a.Write(append([]byte("sbph\x01"), make([]byte, 32)...))
			said := make([]byte, 65)
			_, _ = io.ReadFull(a, said)
			_, _ = a.Write(said[33:])
		}()
		if _, err := handshake.Server(s, key, handshake.OneCall); !errors.Is(err, handshake.ErrImpostor) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("RecordsToWhoSentThem", func(t *testing.T) {
		s, a := sockets(t)
		rec := &recorder{Conn: s}
		theirs := agentSide(a, key)
		c, err := handshake.Server(rec, key, handshake.OneCall)
		if err != nil {
			t.Fatal(err)
		}
		<-theirs
		before := len(rec.sent)
		_, _ = c.Write([]byte("to the agent"))
		_, _ = a.Write(rec.sent[before:])
		if n, err := c.Read(make([]byte, 20)); !errors.Is(err, handshake.ErrForged) {
			t.Errorf("%d %v", n, err)
		}
	})
}

// Whoever carries a connection that is begun can end it, and no more.
func TestRecordsAreAsTheyWereSent(t *testing.T) {
	for name, change := range map[string]func(records [][]byte) [][]byte{
		"ABitOfOne":     func(r [][]byte) [][]byte { r[1][5] ^= 1; return r },
		"TheLength":     func(r [][]byte) [][]byte { r[1][1]--; return r },
		"OneIsLeftOut":  func(r [][]byte) [][]byte { return [][]byte{r[0], r[2]} },
		"OneIsRepeated": func(r [][]byte) [][]byte { return [][]byte{r[0], r[0], r[1], r[2]} },
		"TwoAreSwapped": func(r [][]byte) [][]byte { return [][]byte{r[0], r[2], r[1]} },
		"OneIsMadeUp":   func(r [][]byte) [][]byte { return [][]byte{r[0], append([]byte{0, 4}, make([]byte, 20)...), r[2]} },
	} {
		t.Run(name, func(t *testing.T) {
			key := handshake.NewKey()
			s, a := sockets(t)
			rec := &recorder{Conn: s}
			theirs := agentSide(a, key)
			server, err := handshake.Server(rec, key, handshake.OneCall)
			if err != nil {
				t.Fatal(err)
			}
			agent := (<-theirs).c
			var records [][]byte
			rec.Conn = &nowhere{s}
			for _, text := range []string{"first", "second", "third"} {
				before := len(rec.sent)
				if _, err := server.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
				records = append(records, bytes.Clone(rec.sent[before:]))
			}
			go func() {
				for _, r := range change(records) {
					_, _ = s.Write(r)
				}
				_ = s.Close()
			}()
			got, err := io.ReadAll(agent)
			if !errors.Is(err, handshake.ErrForged) || string(got) != "first" {
				t.Errorf("%q %v", got, err)
			}
			if _, again := agent.Read(make([]byte, 1)); !errors.Is(again, handshake.ErrForged) {
				t.Errorf("and afterwards: %v", again)
			}
		})
	}
}

// nowhere takes what is written, and sends none of it.
type nowhere struct{ net.Conn }

func (*nowhere) Write(b []byte) (int, error) { return len(b), nil }

func TestTheKeyIsNotShown(t *testing.T) {
	key := handshake.NewKey()
	text, err := json.Marshal(struct{ Key *handshake.Key }{key})
	if err != nil {
		t.Fatal(err)
	}
	var again struct{ Key *handshake.Key }
	if err := json.Unmarshal(text, &again); err != nil || *again.Key != *key {
		t.Errorf("%v", err)
	}
	for _, format := range []string{"%v", "%s", "%+v", "%#v", "%q"} {
		if got := fmt.Sprintf(format, key); !strings.Contains(got, "(a key)") || len(got) > 12 {
			t.Errorf("%s: %s", format, got)
		}
	}
}

func TestADialerSaysWhyItCannot(t *testing.T) {
	key := handshake.NewKey()
	listen := func(t *testing.T, serve func(n int, nc net.Conn)) *handshake.Dialer {
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for n := 0; ; n++ {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				serve(n, nc)
			}
		}()
		t.Cleanup(func() { _ = l.Close(); <-ended })
		return &handshake.Dialer{Key: key, What: handshake.OneCall, Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
		}}
	}
	t.Run("AnotherKey", func(t *testing.T) {
		d := listen(t, func(_ int, nc net.Conn) {
			_, _, _ = handshake.Agent(nc, handshake.NewKey(), nil)
			_ = nc.Close()
		})
		if _, err := d.DialContext(t.Context()); !fault.Is(err, fault.Unavailable) || fault.As(err).Remedy == "" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("HangsUpAtFirst", func(t *testing.T) {
		d := listen(t, func(n int, nc net.Conn) {
			if n > 3 {
				_, _, _ = handshake.Agent(nc, key, nil)
			}
			_ = nc.Close()
		})
		c, err := d.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	})
	t.Run("SaysNothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := listen(t, func(_ int, nc net.Conn) { cancel(); _, _ = io.Copy(io.Discard, nc); _ = nc.Close() })
		if _, err := d.DialContext(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzAgent holds that whatever a stranger sends is refused.
func FuzzAgent(f *testing.F) {
	f.Add([]byte("sbph\x01"))
	f.Add(bytes.Repeat([]byte{1}, 65))
	f.Add(make([]byte, 200))
	key := handshake.NewKey()
	f.Fuzz(func(t *testing.T, b []byte) {
		mine, theirs := net.Pipe()
		ended := agentSide(theirs, key)
		go func() { _, _ = io.Copy(io.Discard, mine) }()
		_, _ = mine.Write(b)
		_ = mine.Close()
		if got := <-ended; got.err == nil {
			t.Errorf("%x is taken for a proof", b)
		}
	})
}
