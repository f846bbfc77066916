// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/internal/skiptest"
)

// durable is how old what was acknowledged has to be to be on the disk, see "What is durable when" in
// docs/lifecycle.md: a second, and what a busy host adds.
const durable = 3 * time.Second

// powered is what was acknowledged, and when.
type powered struct {
	mu       sync.Mutex
	boxes    map[string]time.Time // that were made
	gone     map[string]time.Time // that were deleted
	leaving  map[string]bool      // whose deletion was asked for
	files    map[string]file      // by sandbox and path
	snapshot map[string]time.Time

	// calm: nothing is deleted and nothing synced, each of which has the store write what was
	// made by others.
	calm atomic.Bool
}

// file is one that was written.
type file struct {
	at   time.Time
	sync bool // it was on the disk when the answer came
}

// instant is one at which a copy of the disk was taken.
type instant struct {
	name  string
	begin time.Time
}

// content is what a file of that name holds.
func content(name string) string { return strings.Repeat(name+"\n", 1+len(name)*37%900) }

func (p *powered) wrote(box, name string, sync bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[box+" "+name] = file{at: time.Now(), sync: sync}
}

// work makes sandboxes, deletes some, and writes files in them, until ctx is done.
func (p *powered) work(ctx context.Context, c *client.Client, worker int) error {
	begin := time.Now()
	for round := 0; ctx.Err() == nil; round++ {
		box, _, err := c.Create(ctx, v1.CreateSandbox{})
		if err != nil {
			return over(ctx, err)
		}
		p.mu.Lock()
		p.boxes[box.ID] = time.Now()
		p.mu.Unlock()
		calm := p.calm.Load()
		if !calm && round%4 == 3 {
			p.mu.Lock()
			p.leaving[box.ID] = true
			p.mu.Unlock()
			if err := c.Delete(ctx, box.ID); err != nil {
				return over(ctx, err)
			}
			p.mu.Lock()
			p.gone[box.ID] = time.Now()
			p.mu.Unlock()
			continue
		}
		for n := range 4 {
			name := fmt.Sprintf("up-%d-%d-%d", worker, round, n)
			sync := !calm && n == 3
			if err := c.WriteFile(ctx, box.ID, "in/"+name, strings.NewReader(content(name)), client.WriteOptions{Sync: sync}); err != nil {
				return over(ctx, err)
			}
			p.wrote(box.ID, name, sync)
			if calm {
				continue
			}
			command := fmt.Sprintf("sync-%d-%d-%d", worker, round, n)
			text := fmt.Sprintf("cd in && printf '%%s' '%s' > %s && sync %s .", content(command), command, command)
			out, err := c.Exec(ctx, box.ID, v1.Exec{Command: &text})
			if err != nil {
				return over(ctx, err)
			}
			if out.ExitCode == nil || *out.ExitCode != 0 {
				return fmt.Errorf("%s: %+v", command, out)
			}
			p.wrote(box.ID, command, true)
		}
		rest := time.NewTimer(time.Until(begin.Add(time.Duration(round+1) * 700 * time.Millisecond)))
		select {
		case <-rest.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// over is the error of a call, unless the work is over.
func over(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// look holds that the server on a copy of the disk has what was acknowledged before.
func (p *powered) look(ctx context.Context, h *host, at instant) error {
	there := map[string]v1.Sandbox{}
	var errs []error
	lost := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for box, err := range h.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			return err
		}
		there[box.ID] = *box
		if box.Status == "failed" {
			lost("sandbox %s has a record, and failed (%s); it was made %s before the cut", box.ID, box.StopDetail, at.begin.Sub(p.boxes[box.ID]))
		}
	}
	for id, made := range p.boxes {
		_, ok := there[id]
		if age := at.begin.Sub(made); age > durable && !ok && !p.leaving[id] {
			lost("sandbox %s is gone; it was made %s before the cut", id, age)
		}
	}
	for id, gone := range p.gone {
		if box, ok := there[id]; ok && at.begin.Sub(gone) > durable {
			lost("sandbox %s, deleted %s before the cut, is %s", id, at.begin.Sub(gone), box.Status)
		}
	}
	for id, made := range p.snapshot {
		if _, err := h.client.GetSnapshot(ctx, id); err != nil && at.begin.Sub(made) > durable {
			lost("the snapshot %s, made %s before the cut: %v", id, at.begin.Sub(made), err)
		}
	}
	checked, byBox := 0, map[string]map[string]file{}
	for key, f := range p.files {
		box, name := path.Dir(strings.Replace(key, " ", "/", 1)), key[strings.Index(key, " ")+1:]
		if byBox[box] == nil {
			byBox[box] = map[string]file{}
		}
		byBox[box][name] = f
	}
	for id, files := range byBox {
		if s, ok := there[id]; !ok || s.Status == "failed" || p.leaving[id] {
			continue // said above
		}
		if _, err := h.client.Start(ctx, id); err != nil {
			lost("start %s: %v", id, err)
			continue
		}
		command := "cd in 2>/dev/null && for f in up-* sync-*; do printf '%s %s\\n' $f $(sort -u $f | head -c 100):$(wc -c < $f); done; true"
		out, err := h.client.Exec(ctx, id, v1.Exec{Command: &command})
		if err != nil {
			return err
		}
		found := map[string]string{}
		for line := range strings.Lines(out.Stdout) {
			name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
			found[name] = what
		}
		for name, f := range files {
			age := at.begin.Sub(f.at)
			if !f.sync && age < durable || age < 0 {
				continue
			}
			checked++
			text := content(name)
			if got := found[name]; got != fmt.Sprintf("%s:%d", name, len(text)) {
				lost("%s of %s is %q, written %s before the cut (sync: %v)", name, id, got, age, f.sync)
			}
		}
		if _, err := h.client.Stop(ctx, id); err != nil {
			return err
		}
	}
	if checked == 0 {
		lost("no file was old enough to be looked for")
	}
	log, err := os.ReadFile(filepath.Join(h.dir, "server.log"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(log[h.said:])) {
		if strings.Contains(line, "another store") {
			lost("the server said %s", line)
		}
	}
	h.t.Logf("%s: %d sandboxes, %d files", at.name, len(there), checked)
	return errors.Join(errs...)
}

// A power cut takes nothing that docs/lifecycle.md says is on the disk, and leaves nothing that
// the next server does not know what to do with.
func TestSurvivePowerCuts(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts, and the native runtime makes namespaces")
	d := newDrive(t, 6<<10)
	h := hostIn(t, d.dir, "127.0.0.1:0")
	t.Cleanup(h.endAll)
	h.start()
	p := &powered{boxes: map[string]time.Time{}, gone: map[string]time.Time{}, leaving: map[string]bool{}, files: map[string]file{}, snapshot: map[string]time.Time{}}
	p.calm.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work group
	work.limit = 2
	for worker := range work.limit {
		work.do(func() error { return p.work(ctx, h.client, worker) })
	}
	var cuts []instant
	cut := func() {
		t.Helper()
		at := instant{name: fmt.Sprintf("cut-%d", len(cuts)), begin: time.Now()}
		if err := d.cut(at.name); err != nil {
			t.Fatal(err)
		}
		cuts = append(cuts, at)
	}
	time.Sleep(durable + 2*time.Second)
	cut()
	p.calm.Store(false)
	for range length(2, 12) {
		time.Sleep(time.Duration(length(700, 4000)) * time.Millisecond)
		// What commits the store makes disks durable, and their records are not yet.
		box, _, err := h.client.Create(ctx, v1.CreateSandbox{})
		if err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		p.boxes[box.ID] = time.Now()
		p.mu.Unlock()
		snap, err := h.client.Snapshot(ctx, box.ID, v1.CreateSnapshot{})
		if err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		p.snapshot[snap.ID] = time.Now()
		p.mu.Unlock()
		cut()
	}
	stop()
	if err := work.wait(); err != nil {
		t.Fatalf("%v\n%s", err, h.tail())
	}
	h.endAll()
	for _, at := range cuts {
		d.insert(at.name)
		log, err := os.Stat(filepath.Join(h.dir, "server.log"))
		if err == nil {
			h.said = log.Size()
		} else {
			h.said = 0
		}
		h.start()
		if err := p.look(t.Context(), h, at); err != nil {
			t.Errorf("%s: %v", at.name, err)
		}
		h.endAll()
	}
}

// endAll ends the server, and the sandboxes with all that a restart of the host takes.
func (h *host) endAll() {
	if h.cmd == nil || h.http == nil {
		return
	}
	h.kill()
	if err := h.powerOff(context.WithoutCancel(h.t.Context())); err != nil && !strings.Contains(err.Error(), "no state") {
		h.t.Error(err)
	}
	if memory, err := os.Readlink(filepath.Join(h.dir, "data", "native", "instances")); err == nil {
		_ = os.RemoveAll(memory) // it goes with the boot
	}
	h.cmd = nil
}
