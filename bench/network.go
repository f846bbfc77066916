// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	v1 "sandpit.dev/api/v1"
)

// Network is what a policy costs: creates with one and without, in pairs, and
// requests through the gate.
type Network struct {
	Off        *Figures `json:"create_off"`
	Restricted *Figures `json:"create_restricted"`
	// More is how much longer a create with a policy takes than its neighbour
	// without: the median over the pairs, in milliseconds.
	More *float64 `json:"create_more_ms"`
	// First is the first request of a new sandbox, on a new connection, to a server on this
	// host, as a program inside sees it.
	First *Figures `json:"first_request"`
	// Gate and Direct are later requests, each on a new connection: through the gate, and
	// to a server of the sandbox's own, which no gate sees.
	Gate   *Figures `json:"request_gate"`
	Direct *Figures `json:"request_loopback"`
	// Added is what the gate adds to a request: the median over pairs, in milliseconds.
	Added *float64 `json:"request_added_ms"`
}

// asker is a program that times n pairs of requests, one to the server that it is given and
// one to its own, and the first of all by itself.
const asker = `
import json, socket, sys, threading, time
host, port, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'
def ask(to):
    began = time.perf_counter()
    s = socket.create_connection(to, 10)
    s.sendall(b'GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n')
    got = b''
    while True:
        b = s.recv(65536)
        if not b: break
        got += b
    took = (time.perf_counter() - began) * 1e3
    s.close()
    assert got.endswith(b'\r\n\r\nok'), got
    return took
out = {'first': ask((host, port)), 'gate': [], 'own': []}
if n:
    l = socket.create_server(('127.0.0.1', 0), backlog=64)
    def serve():
        while True:
            c, _ = l.accept()
            c.recv(65536); c.sendall(ANSWER); c.close()
    threading.Thread(target=serve, daemon=True).start()
    for _ in range(n):
        out['gate'].append(ask((host, port)))
        out['own'].append(ask(l.getsockname()))
print(json.dumps(out))
`

// hostAddress is an address of this host that sandboxes can be allowed to reach; an error
// where there is none but the loopback's.
func hostAddress() (netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, errors.New("this host has no address but its loopback's")
}

// serveWorld is a server on the host that answers all requests.
func serveWorld(at netip.Addr) (*http.Server, netip.AddrPort, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	s := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { _ = s.Serve(l) }() // ends with Close
	return s, netip.MustParseAddrPort(l.Addr().String()), nil
}

// network measures pairs of creates, and requests through the gate. The server allows
// sandboxes to reach the address at.
func (o *ours) network(ctx context.Context, n int, at netip.Addr) (_ *Network, err error) {
	world, to, err := serveWorld(at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	policy := v1.NetworkPolicy{Mode: "restricted", AllowDomains: []string{"example.org"}, AllowCIDRs: []string{at.String()}}
	var off, restricted, first, gate, own series
	var more, added []float64
	for i := range n + warmUp {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if i == warmUp { // now it counts
			off, restricted, first, more = series{}, series{}, series{}, nil
		}
		var took [2]time.Duration
		for turn := range 2 {
			side := (i + turn) % 2 // neither always runs in the other's wake
			spec := v1.CreateSandbox{}
			if side == 1 {
				spec.Network = policy
			}
			began := time.Now()
			box, _, err := o.client.Create(ctx, spec)
			if took[side] = time.Since(began); err != nil {
				return nil, err
			}
			if side == 1 {
				times, err := o.ask(ctx, box.ID, to, 0)
				first.add(times.first(), err)
			}
			if err := o.client.Delete(ctx, box.ID); err != nil {
				return nil, err
			}
		}
		off.add(took[0], nil)
		restricted.add(took[1], nil)
		more = append(more, ms(took[1]-took[0]))
	}
	box, _, err := o.client.Create(ctx, v1.CreateSandbox{Network: policy})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.client.Delete(ctx, box.ID)) }()
	times, err := o.ask(ctx, box.ID, to, 2*n)
	if err != nil {
		return nil, err
	}
	for i, g := range times.Gate[warmUp:] {
		gate.add(milliseconds(g), nil)
		own.add(milliseconds(times.Own[warmUp+i]), nil)
		added = append(added, g-times.Own[warmUp+i])
	}
	return &Network{
		Off: off.figures(), Restricted: restricted.figures(), More: median(more),
		First: first.figures(), Gate: gate.figures(), Direct: own.figures(), Added: median(added),
	}, nil
}

// askTimes is what the asker prints, in milliseconds.
type askTimes struct {
	First float64   `json:"first"`
	Gate  []float64 `json:"gate"`
	Own   []float64 `json:"own"`
}

func (t askTimes) first() time.Duration { return milliseconds(t.First) }

func milliseconds(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }

func (o *ours) ask(ctx context.Context, ref string, to netip.AddrPort, n int) (out askTimes, err error) {
	if n > 0 {
		n += warmUp
	}
	r, err := o.client.Exec(ctx, ref, v1.Exec{Argv: []string{"python3", "-I", "-c", asker, to.Addr().String(), fmt.Sprint(to.Port()), fmt.Sprint(n)}})
	if err != nil {
		return out, err
	}
	if r.ExitCode == nil || *r.ExitCode != 0 {
		return out, fmt.Errorf("requests from inside ended with %s, %s", number(r.ExitCode), r.Stderr)
	}
	if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil {
		return out, err
	}
	if len(out.Gate) != n || len(out.Own) != n || slices.ContainsFunc(out.Gate, math.IsNaN) {
		return out, fmt.Errorf("of %d pairs of requests %d and %d were timed", n, len(out.Gate), len(out.Own))
	}
	return out, nil
}
