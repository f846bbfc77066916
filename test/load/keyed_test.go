// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// TestKeyedRequestsSurviveKill9 kills the server at random moments while clients make and
// begin things, whose requests the client repeats by their idempotency keys until it has an
// answer. Each has begun exactly once then, and its answer is whole.
func TestKeyedRequestsSurviveKill9(t *testing.T) {
	h := openAt(t, fixedAddress(t))
	ctx := t.Context()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	far := client.New("http://"+h.listen, h.token, client.Options{HTTP: &http.Client{Transport: transport}})
	box, _, err := far.Create(ctx, v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0)), DiskMB: new(512)})
	if err != nil {
		t.Fatal(err)
	}
	k := &keyedLoad{c: far, box: box.ID, began: make(chan struct{}, 64)}
	const callers = 6
	over := make(chan struct{})
	work := group{limit: callers}
	for range callers {
		work.do(func() error {
			for {
				select {
				case <-over:
					return nil
				default:
				}
				if err := k.untilAnswered(ctx, k.next.Add(1)); err != nil {
					return err
				}
			}
		})
	}
	rounds := length(25, 300)
	for range rounds {
		for range 2 + rand.IntN(20) {
			<-k.began
		}
		<-time.After(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
		h.kill()
		h.start()
	}
	close(over)
	if err := work.wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills among %d requests", rounds, k.next.Load())
	if err := k.onceEach(ctx); err != nil {
		t.Error(err)
	}
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
}

// keyedLoad makes requests that leave a mark each time that they begin.
type keyedLoad struct {
	c     *client.Client
	box   string
	next  atomic.Int64 // request
	began chan struct{}

	execs, boxes atomic.Int64
	unknown      atomic.Int64 // of commands it is not known whether they began
}

// count counts a command by how it ended. The answer may be that a kill came between the
// record of a command and its beginning: whether it began is not known then, and it is not
// begun again.
func (k *keyedLoad) count(exit *int) {
	if exit != nil && *exit == 0 {
		k.execs.Add(1)
	} else {
		k.unknown.Add(1)
	}
}

// untilAnswered makes a request; one that no server answers is made again by its key, as the
// client does itself with one that has reached a server.
func (k *keyedLoad) untilAnswered(ctx context.Context, n int64) error {
	select {
	case k.began <- struct{}{}:
	default:
	}
	// A key of the client's own ends with its call, which gives up after some broken answers.
	ctx = client.WithIdempotencyKey(ctx, fmt.Sprintf("request-%d", n))
	for {
		if err := k.one(ctx, n); !fault.Is(err, fault.Unavailable) {
			return err
		}
	}
}

func (k *keyedLoad) one(ctx context.Context, n int64) error {
	label := fmt.Sprint(n)
	text := "echo " + label + " >> /workspace/begun; echo out " + label
	exec := v1.Exec{Command: &text}
	wrong := func(what, got string) error {
		return fmt.Errorf("request %d, %s: got the output %q", n, what, got)
	}
	switch n % 8 {
	case 0, 1:
		r, err := k.c.Exec(ctx, k.box, exec)
		if err != nil {
			return fmt.Errorf("exec: %w", err)
		}
		k.execs.Add(1)
		if r.Stdout != "out "+label+"\n" || r.ExitCode == nil || *r.ExitCode != 0 {
			return wrong("exec", fmt.Sprintf("%+v", r))
		}
	case 2, 3:
		var out strings.Builder
		r, err := k.c.ExecStream(ctx, k.box, exec, func(f client.Frame) error { out.Write(f.Data); return nil })
		if err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		k.execs.Add(1)
		if out.String() != "out "+label+"\n" || r.ExitCode == nil || *r.ExitCode != 0 {
			return wrong("stream", out.String())
		}
	case 4:
		p, err := k.c.StartProcess(ctx, k.box, v1.StartProcess{Command: &text})
		if err != nil {
			return fmt.Errorf("process: %w", err)
		}
		end, err := p.Wait(ctx)
		if err != nil {
			return fmt.Errorf("process: %w", err)
		}
		k.count(end.ExitCode)
	case 5:
		r, err := k.c.StartRun(ctx, k.box, v1.StartRun{Commands: []v1.RunCommandSpec{{Shell: &text}}, WaitSeconds: new(30.0)})
		if err != nil {
			return fmt.Errorf("run: %w", err)
		}
		if len(r.Commands) != 1 {
			return fmt.Errorf("run: got %+v", r)
		}
		k.count(r.Commands[0].ExitCode)
	case 6:
		_, created, err := k.c.Create(ctx, v1.CreateSandbox{Metadata: map[string]string{"n": label}})
		if err != nil || !created {
			return fmt.Errorf("create: created %v, %w", created, err)
		}
		k.boxes.Add(1)
	case 7:
		text := "echo out " + label
		r, err := k.c.CreateExec(ctx, v1.CreateExec{
			Exec: v1.Exec{Command: &text}, Sandbox: v1.CreateSandbox{Metadata: map[string]string{"n": label}},
		})
		if err != nil {
			return fmt.Errorf("create and exec: %w", err)
		}
		k.boxes.Add(1)
		if r.Stdout != "out "+label+"\n" {
			return wrong("create and exec", r.Stdout)
		}
	}
	return nil
}

// onceEach looks at the marks.
func (k *keyedLoad) onceEach(ctx context.Context) error {
	text := "cat begun"
	r, err := k.c.Exec(ctx, k.box, v1.Exec{Command: &text, MaxOutputBytes: new(int64(8 << 20))})
	if err != nil {
		return err
	}
	seen := make(map[string]int)
	for line := range strings.Lines(r.Stdout) {
		seen[strings.TrimSpace(line)]++
	}
	for label, times := range seen {
		if times != 1 {
			return fmt.Errorf("the command %s began %d times", label, times)
		}
	}
	if n, answered, unknown := int64(len(seen)), k.execs.Load(), k.unknown.Load(); n < answered || n > answered+unknown {
		return fmt.Errorf("%d commands began, and %d were answered, beside %d of which that is not known", n, answered, unknown)
	}
	labels := make(map[string]int)
	for s, err := range k.c.List(ctx, client.ListQuery{}) {
		if err != nil {
			return err
		}
		if n := s.Metadata["n"]; n != "" {
			labels[n]++
		}
	}
	for label, times := range labels {
		if times != 1 {
			return fmt.Errorf("the request %s made %d sandboxes", label, times)
		}
	}
	if int64(len(labels)) != k.boxes.Load() {
		return fmt.Errorf("%d sandboxes were made, and %d answered", len(labels), k.boxes.Load())
	}
	return nil
}
