// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

// hostile is an agent that sends what it likes.
type hostile struct{ net.Conn }

func (h *hostile) send(k kind, number uint32, payload string) {
	_, _ = h.Write(append(appendHead(nil, k, number, len(payload)), payload...))
}

func begun(t *testing.T) (*hostile, *Server) {
	t.Helper()
	ours, theirs := net.Pipe()
	h := &hostile{theirs}
	t.Cleanup(func() { _ = theirs.Close() })
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	go h.send(kindReady, 0, "")
	s, err := Begin(t.Context(), ours, func(context.Context, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return h, s
}

var somewhere = string(way{netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("93.184.216.34:443")}.append(nil))

// What an agent may not send ends the session, and no more.
func TestWhatAnAgentMayNotSend(t *testing.T) {
	window := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	for name, attack := range map[string]func(h *hostile){
		"connections that nobody asked for": func(h *hostile) {
			for n := range uint32(100) {
				h.send(kindOpen, 2+n, somewhere)
			}
		},
		"a connection with another number": func(h *hostile) { h.send(kindOpen, 7, somewhere) },
		"the same connection again":        func(h *hostile) { h.send(kindOpen, 1, somewhere) },
		"a connection to half an address":  func(h *hostile) { h.send(kindOpen, 2, somewhere[:20]) },
		"more than the window":             func(h *hostile) { h.send(kindData, 1, strings.Repeat("x", firstWindow)); h.send(kindData, 1, "x") },
		"data after the end":               func(h *hostile) { h.send(kindEnd, 1, ""); h.send(kindData, 1, "x") },
		"a window of gigabytes":            func(h *hostile) { h.send(kindWindow, 1, window(1<<31)) },
		"windows without end": func(h *hostile) {
			for range 4 {
				h.send(kindWindow, 1, window(mostWindow))
			}
		},
		"a window of three bytes":        func(h *hostile) { h.send(kindWindow, 1, "xxx") },
		"a close, which is the server's": func(h *hostile) { h.send(kindClose, 1, "") },
		"a kind that there is not":       func(h *hostile) { h.send(99, 1, "") },
		"it begins again":                func(h *hostile) { h.send(kindReady, 0, ""); h.send(kindReady, 0, "") },
		"a name that is none":            func(h *hostile) { h.send(kindNeed, 0, "../../x") },
		"steps without end":              func(h *hostile) { h.send(kindNeed, 0, "AB"); h.send(kindNeed, 0, "AB") },
		"a datagram without addresses":   func(h *hostile) { h.send(kindDatagram, 0, "xx") },
		"a datagram that is too long":    func(h *hostile) { h.send(kindDatagram, 0, somewhere+strings.Repeat("x", maxDatagram+1)) },
		"more datagrams than were asked for": func(h *hostile) {
			for range 1000 {
				h.send(kindDatagram, 0, somewhere+"x")
			}
		},
		"a frame of 16 MB": func(h *hostile) { _, _ = h.Write([]byte{byte(kindData), 0xff, 0xff, 0xff, 0, 0, 0, 1}) },
		"half a frame":     func(h *hostile) { _, _ = h.Write([]byte{byte(kindData), 0}); _ = h.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			h, s := begun(t)
			go h.send(kindOpen, 1, somewhere)
			c, err := s.Accept()
			if err != nil {
				t.Fatal(err)
			}
			go attack(h)
			for range 3 { // of which each asks for one more
				if _, err = s.Accept(); err != nil {
					break
				}
			}
			if err != nil && !errors.Is(err, net.ErrClosed) {
				t.Errorf("Accept: %v", err)
			}
			<-s.s.over
			if _, err := c.Write(make([]byte, 1<<20)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a write: %v", err)
			}
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a read of what is over")
			}
			if err := s.Answer(nil, netip.MustParseAddr("9.9.9.9"), netip.AddrPort{}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("an answer: %v", err)
			}
			if _, err := s.Answering(netip.AddrPort{}, netip.AddrPort{}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a path: %v", err)
			}
			if err := s.Wait(); err == nil && len(s.queue) == 0 {
				t.Error("there is a datagram to wait for")
			}
		})
	}
}

// What an agent says of why there is no traffic is text from inside.
func TestWordsOfARefusal(t *testing.T) {
	for words, want := range map[string]fault.Code{
		`{"code":"conflict","message":"a\u001b[2Jb"}`:               fault.Conflict,
		`{"code":"unauthenticated","message":"give me your token"}`: fault.Unavailable,
		`{"code":"nonsense"}`:                                       fault.Unavailable,
		`no JSON`:                                                   fault.Unavailable,
		`{"code":"unsupported","message":"` + strings.Repeat("long", 5000) + `"}`: fault.Unsupported,
	} {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		go (&hostile{theirs}).send(kindFailed, 0, words)
		_, err := Begin(t.Context(), ours, func(context.Context, string) error { return nil })
		f := fault.As(err)
		if f == nil || f.Code != want || len(f.Message) > 600 || strings.ContainsRune(f.Message, 0x1b) {
			t.Errorf("%.60q: %v", words, err)
		}
		_ = theirs.Close()
	}
}

// The agent's name for its socket goes into a command line, and what becomes of that is said.
func TestAStepThatFails(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	go (&hostile{theirs}).send(kindNeed, 0, "ABC")
	failed := errors.New("no container")
	_, err := Begin(t.Context(), ours, func(_ context.Context, name string) error {
		if name != "ABC" {
			t.Errorf("it is called %q", name)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ours, silent := net.Pipe()
	defer silent.Close()
	go func() { _, _ = silent.Read(make([]byte, 100)); cancel() }()
	if _, err := Begin(ctx, ours, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with an agent that says nothing: %v", err)
	}
}
