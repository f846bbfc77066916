// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traffic

import (
	"net/netip"
)

// readAll sends datagrams on: those of paths, and others as far as the server asked for them. Where it asked for
// nothing they stay with the kernel, which drops what is too much.
func (i *inside) readAll(s *sockets) {
	lost := uint32(0)
	b := make([]byte, maxDatagram)
	for {
		i.mu.Lock()
		for i.err == nil && !i.stopped && i.room == 0 && len(i.paths) == 0 {
			i.wake.Wait()
		}
		over := i.err != nil || i.stopped
		i.mu.Unlock()
		if over {
			return
		}
		n, w, overflows, err := s.read(b)
		lost += overflows
		if err != nil {
			i.mu.Lock()
			over := i.err != nil || i.stopped
			i.mu.Unlock()
			if over {
				return
			}
			continue // an error of an earlier datagram, which ICMP told of
		}
		i.mu.Lock()
		_, wanted := i.paths[w]
		if !wanted && i.room > 0 {
			i.room--
			wanted = true
		}
		i.mu.Unlock()
		if !wanted {
			lost++
			continue
		}
		if !i.datagram(w, lost, b[:n], true) {
			return
		}
		lost = 0
	}
}

// answer sends a datagram of the server's to a socket inside. What cannot be sent is lost.
func (i *inside) answer(w way, b []byte) {
	i.mu.Lock()
	s := i.sockets
	i.mu.Unlock()
	if s == nil || !w.from.IsValid() || w.from.Addr().Is4() != w.to.Addr().Is4() {
		return
	}
	s.answer(b, w)
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
