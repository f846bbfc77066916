// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "sandpit.dev/api/v1"
)

// DockerGate is how fast a sandbox's traffic passes the gate: from outside, where the server enters the container's network, and through the
// agent, beside the native runtime. One connection carries all of it, to a server on this host; the time is the program's inside.
type DockerGate struct {
	MiB  int      `json:"mib"` // of each run
	Down Compared `json:"download"`
	Up   Compared `json:"upload"`
}

// GbitPerSecond is the speed of the median run; nil: no run worked.
func (d *DockerGate) GbitPerSecond(c Compared, who string) *float64 {
	side := c.Of(who)
	if side == nil || side.Figures == nil || side.Figures.OK == 0 || side.Figures.P50 == 0 {
		return nil
	}
	return new(hundredths(float64(d.MiB) * (1 << 20) * 8 / 1e9 / (side.Figures.P50 / 1e3)))
}

// carrier is a program that brings so many bytes to a server or takes them from it, and says how many seconds that took.
const carrier = `
import socket, sys, time
host, port, way, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
s = socket.create_connection((host, port), 30)
s.settimeout(300)
b = bytearray(1 << 18)
n = 0
s.sendall(way.encode())
assert s.recv(1) == b'.'
began = time.perf_counter()
if way == 'd':
    while n < size:
        k = s.recv_into(b)
        assert k, n
        n += k
else:
    while n < size:
        s.sendall(b)
        n += len(b)
    s.shutdown(socket.SHUT_WR)
    assert s.recv(1) == b'.'
print('%.9f' % (time.perf_counter() - began))
`

const gateMiB = 1024

// freight is a server on the host that sends and takes what the carrier asks for.
type freight struct {
	listener net.Listener
	size     int64
	carrying sync.WaitGroup
}

func newFreight(at netip.Addr, size int64) (*freight, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return nil, err
	}
	f := &freight{listener: l, size: size}
	f.carrying.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.carrying.Go(func() { f.carry(c) })
		}
	})
	return f, nil
}

// carry serves one connection. What fails, the program inside tells.
func (f *freight) carry(c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	way := make([]byte, 1)
	if _, err := io.ReadFull(c, way); err != nil {
		return
	}
	if _, err := c.Write([]byte(".")); err != nil {
		return
	}
	b := make([]byte, 256<<10)
	if way[0] == 'd' {
		for left := f.size; left > 0; {
			n, err := c.Write(b[:min(int64(len(b)), left)])
			if err != nil {
				return
			}
			left -= int64(n)
		}
		return
	}
	if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, b); err == nil && n == f.size {
		_, _ = c.Write([]byte("."))
	}
}

func (f *freight) close() error {
	err := f.listener.Close()
	f.carrying.Wait()
	return err
}

func (s *session) dockerGate(ctx context.Context, e *engine) (_ *DockerGate, err error) {
	outside, err := s.startDockerServer(ctx, e, "gate", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, outside.close(ctx)) }()
	inside, err := s.startDockerServer(ctx, e, "gate-stream", 0, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, inside.close(ctx)) }()
	r := &DockerGate{MiB: min(gateMiB, 16*s.o.pairs())}
	world, err := newFreight(s.allow, int64(r.MiB)<<20)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.close()) }()
	to := netip.MustParseAddrPort(world.listener.Addr().String())
	spec := v1.CreateSandbox{CPUCores: new(float64(runtime.NumCPU())), Network: v1.NetworkPolicy{Mode: "restricted", AllowCIDRs: []string{s.allow.String()}}}
	return r, s.us.with(ctx, spec, func(native string) error {
		return outside.with(ctx, spec, func(near string) error {
			return inside.with(ctx, spec, func(far string) (err error) {
				for _, way := range []struct {
					into       *Compared
					what, name string
				}{{&r.Down, "download through the gate", "d"}, {&r.Up, "upload through the gate", "u"}} {
					side := func(o *ours, ref string) func(context.Context) (time.Duration, error) {
						return func(ctx context.Context) (time.Duration, error) { return o.carry(ctx, ref, to, way.name, world.size) }
					}
					*way.into, err = s.turns(ctx, fmt.Sprintf("%s, %d MiB", way.what, r.MiB), max(2, s.o.pairs()/20), 1, []turn{
						{Native, side(s.us, native)}, {Sockets, side(outside.ours, near)}, {Streamed, side(inside.ours, far)},
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

// carry has the program inside carry, and returns how long it says that took.
func (o *ours) carry(ctx context.Context, ref string, to netip.AddrPort, way string, size int64) (time.Duration, error) {
	r, err := o.client.Exec(ctx, ref, v1.Exec{Argv: []string{"python3", "-I", "-c", carrier, to.Addr().String(), fmt.Sprint(to.Port()), way, fmt.Sprint(size)}})
	if err != nil {
		return 0, err
	}
	if r.ExitCode == nil || *r.ExitCode != 0 {
		return 0, fmt.Errorf("what carries inside ended with %s, %s", number(r.ExitCode), r.Stderr)
	}
	return saidSeconds(r.Stdout)
}

// saidSeconds reads how long a program says that it took.
func saidSeconds(out string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil || seconds <= 0 {
		return 0, fmt.Errorf("a program says %q for how long it took", out)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func (d *DockerGate) rows(row func(name string, f *Figures)) {
	if d == nil {
		return
	}
	d.Down.rows(row)
	d.Up.rows(row)
}

func (d *DockerGate) lines(say func(format string, args ...any)) {
	if d == nil {
		return
	}
	for _, c := range []Compared{d.Down, d.Up} {
		for _, side := range c.Sides {
			if v := d.GbitPerSecond(c, side.Who); v != nil {
				say("%s, %s: %.2f Gbit/s (median run)", c.What, side.Who, *v)
			}
		}
	}
}
