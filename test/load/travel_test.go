// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

const (
	travellers    = 3 // callers at once, each at a sandbox of its own
	mostTravelled = 6 // sandboxes
	mostKept      = 4 // snapshots of one
)

// Random verbs on the disks and lives of sandboxes, with the server killed at
// random moments: what was answered is there afterwards, and what was not
// answered happened whole or not at all.
func TestSurviveKill9AmidTimeTravel(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if err := h.cycle(ctx); err != nil {
		t.Fatal(err)
	}
	h.http.CloseIdleConnections()
	before := h.rest()

	w := newTravel()
	verbs, kills := length(100, 2000), 0
	var starting, checking time.Duration
	began := time.Now()
	for w.total() < verbs {
		if err := h.killedAmid(ctx, w); err != nil {
			t.Fatalf("before kill %d: %v", kills+1, err)
		}
		kills++
		killed := time.Now()
		h.start()
		starting += time.Since(killed)
		if err := w.reconcile(ctx, h.client, false); err != nil {
			t.Fatalf("after kill %d: %v", kills, err)
		}
		checking += time.Since(killed)
	}
	t.Logf("%d kills among %d answered verbs in %v; ready again after %v on average, looked at after %v more: %v", kills, w.total(),
		time.Since(began).Round(time.Millisecond), (starting / time.Duration(kills)).Round(time.Millisecond),
		((checking - starting) / time.Duration(kills)).Round(time.Millisecond), w.did)
	if err := w.reconcile(ctx, h.client, true); err != nil {
		t.Fatalf("at the end: %v", err)
	}
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.deleteSnapshots(ctx); err != nil {
		t.Fatal(err)
	}
	h.holdNothingBeyond(before)
}

// killedAmid has callers at work and kills the server at a random moment of a
// random verb.
func (h *host) killedAmid(ctx context.Context, w *travel) error {
	at := int64(travellers + rand.IntN(20))
	var calls atomic.Int64
	doomed := make(chan struct{})
	var once sync.Once
	c := h.client
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := group{limit: travellers}
	for range travellers {
		g.do(func() error {
			for {
				if calls.Add(1) >= at {
					once.Do(func() { close(doomed) })
				}
				answered, err := w.act(ctx, c)
				if err != nil || !answered {
					once.Do(func() { close(doomed) })
					return err
				}
			}
		})
	}
	<-doomed
	// A verb takes some milliseconds: this makes the moment within it random.
	time.Sleep(time.Duration(rand.Int64N(int64(30 * time.Millisecond))))
	h.kill()
	cancel() // the client would repeat what broke off
	return g.wait()
}

// deleteSnapshots deletes every snapshot there is.
func (h *host) deleteSnapshots(ctx context.Context) error {
	for s, err := range h.client.Snapshots(ctx, client.SnapshotQuery{}) {
		if err == nil {
			err = h.client.DeleteSnapshot(ctx, s.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// travel is the model: what was answered of every sandbox.
type travel struct {
	serial atomic.Int64 // distinguishes contents and names

	mu    sync.Mutex
	boxes map[string]*travelled
	dead  map[string]bool // deleted, by an answer
	left  []*travelled    // those of dead that had snapshots, which stay
	did   map[string]int  // answered verbs

	disk *ownDisk           // that of the data directory, which fills up and is freed; nil: it has room
	full map[fault.Disk]int // verbs that were refused
}

func newTravel() *travel {
	return &travel{boxes: map[string]*travelled{}, dead: map[string]bool{}, did: map[string]int{}, full: map[fault.Disk]int{}}
}

func (w *travel) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, k := range w.did {
		n += k
	}
	return n
}

// take returns a sandbox for one caller alone, or nil: then make one.
func (w *travel) take() *travelled {
	w.mu.Lock()
	defer w.mu.Unlock()
	var free []*travelled
	for _, id := range sortedKeys(w.boxes) {
		if b := w.boxes[id]; !b.taken && !b.leaving {
			free = append(free, b)
		}
	}
	if len(free) == 0 || len(w.boxes) < mostTravelled && rand.IntN(6) == 0 {
		return nil
	}
	b := free[rand.IntN(len(free))]
	b.taken = true
	return b
}

func (w *travel) give(b *travelled) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.taken = false
}

// act does one random verb, records what was answered or that nothing was, and reports which. Its
// error is that of an answer.
func (w *travel) act(ctx context.Context, c *client.Client) (answered bool, err error) {
	if w.disk != nil && rand.IntN(8) == 0 {
		return true, w.disk.change()
	}
	b := w.take()
	verb := "create"
	if b == nil {
		err = w.create(ctx, c)
	} else {
		defer w.give(b)
		verb = b.choose()
		before := b.clone()
		if err = w.do(ctx, c, b, verb); w.refused(verb, err) {
			b.restore(before)
			return true, nil
		}
		if err != nil && !unanswered(err) {
			err = fmt.Errorf("%s of %s (%v): %w", verb, b.id, b.status, err)
		}
	}
	if unanswered(err) {
		return false, nil
	}
	if b == nil && w.refused(verb, err) {
		return true, nil
	}
	if err == nil {
		w.mu.Lock()
		w.did[verb]++
		w.mu.Unlock()
	}
	return true, err
}

// create makes a sandbox, half of them with a process that writes a log.
func (w *travel) create(ctx context.Context, c *client.Client) error {
	autoResume := w.disk == nil && rand.IntN(2) == 0
	r := v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0)), AutoResume: &autoResume}
	if w.disk != nil {
		r.DiskMB = new(diskMB())
	}
	box, _, err := c.Create(ctx, r)
	if err != nil {
		return err
	}
	b := newTravelled(box, worlds{{}}, 0)
	b.fills = w.disk != nil
	b.taken = true
	defer w.give(b)
	w.mu.Lock()
	w.boxes[b.id] = b
	w.mu.Unlock()
	if !b.fills && rand.IntN(2) == 0 {
		return b.startWriter(ctx, c)
	}
	return nil
}

// do does one verb. Before the call b is what it is if no answer comes; after the
// answer it is what was answered.
func (w *travel) do(ctx context.Context, c *client.Client, b *travelled, verb string) error {
	n := w.serial.Add(1)
	was := b.status[0]
	// moves is a verb by which the sandbox comes to a state.
	moves := func(to string, call func(context.Context, string) (*v1.Sandbox, error)) error {
		b.status = []string{was, to}
		box, err := call(ctx, b.id)
		if err != nil {
			return err
		}
		b.status = []string{to}
		return b.is(box)
	}
	switch verb {
	case "write":
		content := strings.Repeat(fmt.Sprintf("write %d\n", n), 1+rand.IntN(20_000))
		path := workspaceFile(rand.IntN(namesEach))
		b.mayWrite(was, path, content)
		if b.fills {
			b.unsynced(path)
		}
		if err := c.WriteFile(ctx, b.id, path, strings.NewReader(content), client.WriteOptions{}); err != nil {
			return err
		}
		if b.fills {
			return b.sync(ctx, c, path, content)
		}
		b.wrote(path, content)
	case "exec":
		content, path := fmt.Sprintf("exec %d", n), rootFile(rand.IntN(namesEach))
		b.mayWrite(was, path, content)
		command := fmt.Sprintf("printf %%s '%s' > %s.new && mv %s.new %s", content, path, path, path)
		if b.fills {
			command = fmt.Sprintf("printf %%s '%s' > %s.new && sync %s.new && mv %s.new %s", content, path, path, path, path)
		}
		r, err := c.Exec(ctx, b.id, v1.Exec{Command: &command})
		if err != nil {
			return err
		}
		if b.fills && noSpaceInside(r) {
			return errNoSpaceInside
		}
		if r.ExitCode == nil || *r.ExitCode != 0 {
			return fmt.Errorf("got %s, cause %q, %s", code(r.ExitCode), r.Cause, r.Stderr)
		}
		b.wrote(path, content)
	case "look":
		return b.look(ctx, c)
	case "fill":
		return b.fill(ctx, c)
	case "free":
		return b.free(ctx, c)
	case "pause":
		return moves("paused", c.Pause)
	case "resume":
		return moves("running", c.Resume)
	case "stop":
		b.writer = b.writer.doubted()
		err := moves("stopped", c.Stop)
		if err == nil {
			b.writer = no
		}
		return err
	case "start":
		if err := moves("running", c.Start); err != nil {
			return err
		}
		if b.writer == no && !b.fills && rand.IntN(2) == 0 {
			return b.startWriter(ctx, c)
		}
	case "snapshot":
		name := fmt.Sprintf("s%d", n)
		b.kept[name] = &keptDisk{worlds: b.worlds.clone(), lines: b.lines}
		s, err := c.Snapshot(ctx, b.id, v1.CreateSnapshot{Name: &name})
		if err != nil {
			return err
		}
		b.kept[name].sure = true
		if s.Status != "ready" {
			return fmt.Errorf("the snapshot %s is %s", name, s.Status)
		}
	case "drop":
		name := b.someKept()
		b.kept[name].leaving = true
		if err := c.DeleteSnapshot(ctx, b.id+"/"+name); err != nil {
			return err
		}
		delete(b.kept, name)
	case "rollback":
		name := b.someKept()
		return b.exchange(b.kept[name].worlds, b.kept[name].lines, func() (*v1.Sandbox, error) { return c.Rollback(ctx, b.id, name) })
	case "reset":
		return b.exchange(worlds{{}}, 0, func() (*v1.Sandbox, error) { return c.Reset(ctx, b.id) })
	case "fork":
		return w.fork(ctx, c, b)
	case "delete":
		b.leaving = true
		if err := c.Delete(ctx, b.id); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.buried(b)
	}
	return nil
}

// buried is that a sandbox is gone. The caller has mu, or is alone.
func (w *travel) buried(b *travelled) {
	delete(w.boxes, b.id)
	w.dead[b.id] = true
	if len(b.kept) > 0 {
		w.left = append(w.left, b)
	}
}

// fork makes one or three forks, of now or of a snapshot, and adds those to the
// model that there is room for.
func (w *travel) fork(ctx context.Context, c *client.Client, b *travelled) error {
	count := 1 + 2*rand.IntN(2)
	r := v1.ForkSandbox{Count: &count}
	disks, lines := b.worlds.clone(), b.lines
	if len(b.kept) > 0 && rand.IntN(2) == 0 {
		name := b.someKept()
		r.From, disks, lines = &name, b.kept[name].worlds.clone(), b.kept[name].lines
	}
	b.forking = count
	made, err := c.Fork(ctx, b.id, r)
	if err != nil {
		return err
	}
	if len(made) != count {
		return fmt.Errorf("%d forks were made of %d", len(made), count)
	}
	b.forking = 0
	forks := make([]*travelled, count)
	w.mu.Lock()
	for i := range made {
		forks[i] = newTravelled(&made[i], disks.clone(), lines)
		forks[i].taken, forks[i].fills = true, b.fills
		w.boxes[forks[i].id] = forks[i]
	}
	w.mu.Unlock()
	defer func() {
		for _, f := range forks {
			w.give(f)
		}
	}()
	for _, f := range forks {
		w.mu.Lock()
		most := len(w.boxes) > mostTravelled
		w.mu.Unlock()
		err := f.look(ctx, c)
		if err == nil && most {
			f.leaving = true
			if err = c.Delete(ctx, f.id); fault.Is(err, fault.Full) {
				err = fmt.Errorf("delete of the fork %s: %s", f.id, err.Error())
			}
			if err == nil {
				w.mu.Lock()
				w.buried(f)
				w.mu.Unlock()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settled waits until no sandbox is in the middle of something, which a server that has just
// begun may be finishing, and returns them all.
func settled(ctx context.Context, c *client.Client) (map[string]*v1.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		there := map[string]*v1.Sandbox{}
		busy := ""
		for box, err := range c.List(ctx, client.ListQuery{}) {
			if err != nil {
				return nil, err
			}
			there[box.ID] = box
			if !slices.Contains([]string{"running", "paused", "stopped", "failed"}, box.Status) {
				busy = fmt.Sprintf("%s is %s", box.ID, box.Status)
			}
		}
		if busy == "" {
			return there, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("after a restart %s and stays so", busy)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// reconcile holds the server to all that it answered, and lets the model know what
// became of what it did not. Where all is asked for, whatever is stopped or paused
// is started to be looked at, and so is every snapshot.
func (w *travel) reconcile(ctx context.Context, c *client.Client, all bool) error {
	there, err := settled(ctx, c)
	if err != nil {
		return err
	}
	forks := map[string][]*v1.Sandbox{} // without an answer, by their parent
	for _, id := range sortedKeys(there) {
		switch {
		case w.dead[id]:
			return fmt.Errorf("%s was deleted and is there, %s\n%s", id, there[id].Status, story(ctx, c, id))
		case w.boxes[id] == nil && there[id].ForkedFrom != nil:
			forks[*there[id].ForkedFrom] = append(forks[*there[id].ForkedFrom], there[id])
		case w.boxes[id] == nil: // its create was not answered; it has to be whole
			err := newTravelled(there[id], worlds{{}}, 0).look(ctx, c)
			if err := errors.Join(err, c.Delete(ctx, id)); err != nil {
				return err
			}
			w.dead[id] = true
		}
	}
	g := group{limit: 4}
	for _, id := range sortedKeys(w.boxes) {
		b := w.boxes[id]
		if there[id] == nil {
			if !b.leaving {
				_ = g.wait()
				return fmt.Errorf("%s was created, and is gone\n%s", id, story(ctx, c, id))
			}
			w.buried(b)
			continue
		}
		unanswered := forks[id]
		delete(forks, id)
		for _, f := range unanswered {
			w.dead[f.ID] = true
		}
		g.do(func() error {
			if err := b.settle(ctx, c, there[id], unanswered, all); err != nil {
				return fmt.Errorf("%s, %s: %w\n%s", id, there[id].Status, err, story(ctx, c, id))
			}
			return nil
		})
	}
	for parent, of := range forks {
		_ = g.wait()
		return fmt.Errorf("%d forks of %s are there, which nobody asked for", len(of), parent)
	}
	for _, b := range w.left {
		if all {
			g.do(func() error { return b.settleKept(ctx, c, true) })
		}
	}
	return g.wait()
}
