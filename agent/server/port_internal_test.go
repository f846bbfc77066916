// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/binary"
	"testing"

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
