// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "sandpit.dev/api/v1"
)

// events times how long it takes from before a sandbox is changed until each of so many subscribers has read of that. The
// subscribers share the machine with the server: each costs a look at its connection.
func (s *server) events(ctx context.Context, ref string, subscribers, n int) (_ *Figures, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	came, failed := make(chan arrival, subscribers), make(chan error, subscribers)
	for range subscribers {
		conn, in, err := s.subscribe(ctx)
		if err != nil {
			return nil, err
		}
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			failed <- errors.Join(arrivals(in, came), conn.Close())
		})
	}
	took := make([]time.Duration, 0, n*subscribers)
	for i := range n + warmUp {
		began := time.Now()
		change := v1.UpdateSandbox{Metadata: map[string]string{"n": strconv.Itoa(i)}}
		if _, err := s.client.Update(ctx, ref, change); err != nil {
			return nil, err
		}
		for range subscribers {
			select {
			case a := <-came:
				if a.n != i {
					return nil, fmt.Errorf("the event of change %d came after change %d", a.n, i)
				}
				if i >= warmUp {
					took = append(took, a.at.Sub(began))
				}
			case err := <-failed:
				return nil, fmt.Errorf("a stream of events ended: %w", err)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	out := &series{n: len(took), ok: took}
	return out.figures(), nil
}

// arrival is the event of a change, when it was read.
type arrival struct {
	n  int
	at time.Time
}

// subscribe opens a stream of events, and returns when it has begun.
func (s *server) subscribe(ctx context.Context) (_ net.Conn, in *bufio.Reader, err error) {
	addr := strings.TrimPrefix(s.url, "http://")
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if _, err = fmt.Fprintf(conn, "GET /v1/events?type=sandbox.updated HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", addr, s.token); err != nil {
		return nil, nil, err
	}
	in = bufio.NewReaderSize(conn, 16<<10)
	for first := true; ; first = false {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, nil, err
		}
		if first && !strings.Contains(line, " 200 ") {
			return nil, nil, fmt.Errorf("a stream of events is answered with %q", strings.TrimSpace(line))
		}
		if strings.Contains(line, "event: begun") {
			return conn, in, nil
		}
	}
}

// arrivals passes on each event that has a label n.
func arrivals(in *bufio.Reader, to chan<- arrival) error {
	label := []byte(`"metadata":{"n":"`)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		_, rest, found := bytes.Cut(line, label)
		if !found {
			continue
		}
		at := time.Now()
		number, _, _ := bytes.Cut(rest, []byte{'"'})
		n, err := strconv.Atoi(string(number))
		if err != nil {
			return err
		}
		to <- arrival{n, at}
	}
}
