// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// counter counts on its standard output, answers each line of its standard input
// with the same on its standard error, and ends with both.
const counter = `
import os, select, sys
n, held = 0, b""
while True:
    ready, _, _ = select.select([0], [], [], 0.002)
    if ready:
        data = os.read(0, 65536)
        if not data:
            break
        lines = (held + data).split(b"\n")
        held = lines.pop()
        for line in lines:
            os.write(2, b"in " + line + b"\n")
    text = b"".join(b"%d\n" % i for i in range(n, n + 40))
    n += 40
    while text:
        text = text[os.write(1, text):]
os.write(2, b"counted %d\n" % n)
sys.exit(42)
`

// fixedAddress returns an address that a server can be restarted on: outside of the ports that
// the kernel assigns to connections, one of which could take it in between.
func fixedAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		at := "127.0.0.1:" + strconv.Itoa(10_000+rand.IntN(20_000))
		l, err := net.Listen("tcp", at)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return at
	}
	t.Fatal("no port is free")
	return ""
}

// audience follows one process and holds that it hears every byte once, in order.
type audience struct {
	numbers, answers lines
	last             atomic.Int64 // of its frames
	exit             *v1.Process
}

// lines checks a stream line by line; what is not whole yet waits.
type lines struct {
	held []byte
	n    int // lines so far
	rest []string
	form string // of line n; what does not fit goes to rest
}

func (l *lines) write(p []byte) error {
	l.held = append(l.held, p...)
	for {
		line, after, whole := bytes.Cut(l.held, []byte("\n"))
		if !whole {
			return nil
		}
		if want := fmt.Sprintf(l.form, l.n); string(line) == want {
			l.n++
		} else if l.rest = append(l.rest, string(line)); len(l.rest) > 1 {
			return fmt.Errorf("line %d is %q, want %q", l.n, line, want)
		}
		l.held = after
	}
}

func (a *audience) hear(ctx context.Context, p *client.Process) error {
	a.numbers.form, a.answers.form = "%d", "in %d"
	for out, err := range p.Follow(ctx, client.FollowOptions{}) {
		switch {
		case err != nil:
			return err
		case out.Gap != nil:
			return fmt.Errorf("%d bytes of %s are missing: %s", out.Gap.Bytes, out.Gap.Stream, out.Gap.Why)
		case out.Exit != nil:
			a.exit = out.Exit
			continue
		case out.Seq != a.last.Load()+1:
			return fmt.Errorf("frame %d came after %d", out.Seq, a.last.Load())
		case out.Stderr:
			err = a.answers.write(out.Data)
		default:
			err = a.numbers.write(out.Data)
		}
		if err != nil {
			return err
		}
		a.last.Store(out.Seq)
	}
	return nil
}

// TestProcessesSurviveKill9 kills the server at random moments, with another build every time,
// while processes write and are written to and followed. No follower may miss a byte, or get one
// twice.
func TestProcessesSurviveKill9(t *testing.T) {
	h := openAt(t, fixedAddress(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	defer transport.CloseIdleConnections()
	far := client.New("http://"+h.listen, h.token, client.Options{HTTP: &http.Client{Transport: transport}})
	box, _, err := far.Create(ctx, v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0))})
	if err != nil {
		t.Fatal(err)
	}
	const processes, followers = 2, 3
	var started [processes]*client.Process
	var sent [processes]int
	heard := make([]*audience, 0, processes*followers)
	over := make(chan struct{})
	var follow, write group
	follow.limit, write.limit = processes*followers, processes
	for i := range processes {
		p, err := far.StartProcess(ctx, box.ID, v1.StartProcess{
			Argv: []string{"python3", "-c", counter}, StreamStdin: new(true), MaxOutputBytes: new(int64(64 << 20)),
		})
		if err != nil {
			t.Fatal(err)
		}
		started[i] = p
		for range followers {
			a := new(audience)
			heard = append(heard, a)
			follow.do(func() error { return a.hear(ctx, p) })
		}
		write.do(func() error {
			in := p.Stdin(ctx)
			for {
				select {
				case <-over:
					return in.Close()
				case <-time.After(time.Duration(rand.Int64N(int64(2 * time.Millisecond)))):
				}
				if _, err := fmt.Fprintf(in, "%d\n", sent[i]); err != nil {
					return err
				}
				sent[i]++
			}
		})
	}

	rounds := length(100, 400)
	kept := newShort(far, box.ID)
	var worst, down time.Duration
	for round := range rounds {
		h.build = program
		if round%2 == 0 {
			h.build = otherBuild
		}
		if _, err := h.build(); err != nil { // before the clock runs
			t.Fatal(err)
		}
		var load sync.WaitGroup
		calls, end := context.WithCancel(ctx) // the client repeats what broke off for a minute
		for range 2 {
			load.Go(func() { kept.start(calls) })
		}
		time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond)))) // a random moment to die at
		h.kill()
		end()
		load.Wait()
		gone := time.Now()
		before := make([]int64, len(heard))
		for i, a := range heard {
			before[i] = a.last.Load()
		}
		h.start()
		back := time.Now()
		down += back.Sub(gone)
		for i, a := range heard {
			for a.last.Load() == before[i] {
				if err := errors.Join(follow.failed(), write.failed()); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				time.Sleep(time.Millisecond)
			}
		}
		worst = max(worst, time.Since(back))
	}
	close(over)
	if err := write.wait(); err != nil {
		t.Fatal(err)
	}
	if err := follow.wait(); err != nil {
		t.Fatal(err)
	}
	for i, a := range heard {
		p := started[i/followers]
		if a.exit == nil || *a.exit.ExitCode != 42 || a.exit.ProcessID != p.ID() {
			t.Fatalf("follower %d: got the end %+v", i, a.exit)
		}
		if want := sent[i/followers]; a.answers.n != want {
			t.Errorf("follower %d: %d lines of input came back, of %d that were sent", i, a.answers.n, want)
		}
		if want := fmt.Sprintf("counted %d", a.numbers.n); len(a.answers.rest) != 1 || a.answers.rest[0] != want {
			t.Errorf("follower %d: heard %d numbers, and at the end %q", i, a.numbers.n, a.answers.rest)
		}
	}
	t.Logf("%d kills; back after %v on average; a follower went on %v after that at the latest; %d and %d numbers, %d and %d lines of input",
		rounds, (down / time.Duration(rounds)).Round(time.Millisecond), worst.Round(time.Millisecond),
		heard[0].numbers.n, heard[followers].numbers.n, sent[0], sent[1])
	if err := kept.hold(ctx); err != nil {
		t.Error(err)
	}
	page, err := far.ActivityPage(ctx, box.ID, client.ActivityQuery{ProcessID: started[0].ID()})
	if err != nil || len(page.Items) != 1 || page.Items[0].Status != "exited" || *page.Items[0].ExitCode != 42 {
		t.Errorf("the event: got %+v, %v", page, err)
	}
}

// short are processes that end by themselves, whose start was answered.
type short struct {
	client *client.Client
	ref    string

	mu       sync.Mutex
	promised map[string]int // exit codes
}

func newShort(c *client.Client, ref string) *short {
	return &short{client: c, ref: ref, promised: map[string]int{}}
}

// start starts such processes until the server is gone.
func (s *short) start(ctx context.Context) {
	for {
		code := rand.IntN(200)
		p, err := s.client.StartProcess(ctx, s.ref, v1.StartProcess{Command: new(fmt.Sprintf("echo %d; sleep 0.0%d; echo end; exit %d", code, code%10, code))})
		if err != nil {
			return
		}
		s.mu.Lock()
		s.promised[p.ID()] = code
		s.mu.Unlock()
	}
}

// hold checks that all of them are on record, with all that they wrote.
func (s *short) hold(ctx context.Context) error {
	checked := 0
	for id, code := range s.promised {
		p := s.client.OpenProcess(s.ref, id)
		rec, err := p.Wait(ctx)
		if err != nil {
			return fmt.Errorf("process %s: %w", id, err)
		}
		if *rec.ExitCode != code {
			return fmt.Errorf("process %s ended with %d, cause %q, want %d", id, *rec.ExitCode, rec.Cause, code)
		}
		var out bytes.Buffer
		for o, err := range p.Follow(ctx, client.FollowOptions{}) {
			if fault.Is(err, fault.NotFound) { // its log was the oldest of too many
				break
			}
			if err != nil {
				return fmt.Errorf("process %s: %w", id, err)
			}
			out.Write(o.Data)
			if o.Exit != nil {
				checked++
			}
		}
		if want := fmt.Sprintf("%d\nend\n", code); out.Len() > 0 && out.String() != want {
			return fmt.Errorf("process %s wrote %q, want %q", id, out.String(), want)
		}
	}
	if checked == 0 {
		return errors.New("no short process was kept: nothing was checked")
	}
	return nil
}
