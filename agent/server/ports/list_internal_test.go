// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
)

func TestLinesOfSockets(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the lines are those of a little-endian machine")
	}
	const rest = " 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0"
	tcp, udp := table{protocol: "tcp", state: 10}, table{protocol: "udp", state: 7}
	for line, want := range map[string]wire.Port{
		"   0: 0100007F:1F40 00000000:0000 0A" + rest:                                                 {Port: 8000, Protocol: "tcp", Address: "127.0.0.1"},
		"   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A" + rest: {Port: 80, Protocol: "tcp", Address: "::1"},
		"   2: 0000000000000000FFFF00000300007F:0050 00000000000000000000000000000000:0000 0A" + rest: {Port: 80, Protocol: "tcp", Address: "127.0.0.3"},
	} {
		got, ok := tcp.parse([]byte(line))
		if !ok || got.Port != want || got.uid != 1000 || got.inode != 4711 {
			t.Errorf("%s: got %+v, %v", line, got, ok)
		}
	}
	if got, ok := udp.parse([]byte("   0: 00000000:0035 00000000:0000 07" + rest)); !ok || got.Protocol != "udp" || got.Port.Port != 53 {
		t.Errorf("got %+v, %v", got, ok)
	}
	for _, line := range []string{
		"", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
		"   0: 0100007F:1F40 0100007F:1F41 01" + rest, "   0: 0100007F:0000 00000000:0000 0A" + rest,
		"   0: 0100007F 00000000:0000 0A" + rest, "   0: 01007F:1F40 00000000:0000 0A" + rest, "   0: ZZ00007F:1F40 00000000:0000 0A" + rest,
		"   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000", "   0: :1F40 00000000:0000 0A" + rest,
	} {
		if got, ok := tcp.parse([]byte(line)); ok {
			t.Errorf("%q: got %+v", line, got)
		}
	}
}

// TestADialKeepsOnlyWhatItAskedFor looks for one port in lists that hostile
// programs have filled.
func TestADialKeepsOnlyWhatItAskedFor(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the lines are those of a little-endian machine")
	}
	const rest = " 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0\n"
	list := func(name string, lines ...string) table {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return table{file: file, protocol: "tcp", state: 10}
	}
	var full []string
	for i := range 6000 {
		full = append(full, fmt.Sprintf("%4d: 0200007F:%04X 00000000:0000 0A", i, 10_000+i)+rest)
	}
	want := "   0: 0300007F:1F40 00000000:0000 0A" + rest
	full = append(full, want, want,
		"   0: 00000000:1F40 00000000:0000 0A"+rest, // every address: those tried too
		"   0: 0100007F:1F40 00000000:0000 0A"+rest, // tried
		"   0: 0500007F:1F40 0100007F:2710 01"+rest, // a connection
		"   0: 0600007F:2710 0100007F:1F40 0A"+rest) // another port
	lists := []table{list("tcp", full...), {file: "/nowhere", protocol: "tcp", state: 10}, list("tcp6", "   0: 0400007F:1F40 00000000:0000 0A"+rest)}
	tried := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	expect := []netip.Addr{netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("127.0.0.4")}
	var got []netip.Addr
	var err error
	allocs := testing.AllocsPerRun(3, func() { got, err = listeners(lists, 8000, tried) })
	if err != nil || !slices.Equal(got, expect) {
		t.Errorf("got %v, %v", got, err)
	}
	if allocs > 200 {
		t.Errorf("%v allocations for 6000 lines of other ports", allocs)
	}

	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("%4d: %02X00007F:1F40 00000000:0000 0A", i, 10+i)+rest)
	}
	if got, err := listeners([]table{list("tcp", many...), lists[0]}, 8000, tried); err != nil || len(got) != maxAddresses {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestOneCallAtATimeLooksAndWhoeverLeftDoesNot(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	caller, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	c := call.New(served)
	s := New(func() view.View { return view.Plain(view.Identity{Name: "sandbox"}) })
	done, err := s.look(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.look(over, c); !errors.Is(err, context.Canceled) {
		t.Errorf("beside another: got %v", err)
	}
	_ = caller.Close()
	if _, _, err := s.ports(t.Context(), c); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listing beside another, without a caller: got %v", err)
	}
	done()
	if _, err := s.look(t.Context(), c); !errors.Is(err, net.ErrClosed) {
		t.Errorf("without a caller: got %v", err)
	}
	if len(s.looking) != 0 {
		t.Error("the turn of a caller that left is not given back")
	}
}
