// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/events"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

func caller(project string, scopes ...access.Scope) access.Caller {
	return access.Caller{Project: project, Actor: "alice", Via: "rest", Scopes: scopes}
}

var alice = caller(access.DefaultProject, access.Admin, access.SandboxesRead, access.SandboxesWrite)

// house is an engine whose changes are logged.
type house struct {
	*enginetest.Server
	t   *testing.T
	log *events.Log // of the server that runs
}

// shown is what the tests have of a record.
type shown struct{ Name, Status string }

func object(record any) any {
	switch r := record.(type) {
	case *sandbox.Sandbox:
		return shown{r.Key, string(r.State)}
	case *sandbox.Snapshot:
		return shown{r.Name, string(r.State)}
	case *sandbox.Volume:
		return shown{r.Name, string(r.State)}
	case *template.Template:
		return shown{r.Name, string(r.Status)}
	case *shown: // an image
		return *r
	}
	return nil
}

func start(t *testing.T, o events.Options) *house {
	t.Helper()
	o.Object = object
	h := &house{t: t}
	h.Server = enginetest.Start(t, t.TempDir(), func(e *engine.Options) {
		h.log = events.New(e.Store, o)
		e.Store = h.log.Store()
		log := h.log
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- log.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			must(t, <-ended)
		})
	})
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var errEnough = errors.New("enough")

// line is an event in a test's words.
func line(e *events.Event) string {
	return fmt.Sprintf("%s %s by %s", e.Type, strings.NewReplacer(`{"Name":`, "", `"Status":`, "", `"`, "", "}", "", ",", " ").Replace(string(e.Object)), e.Actor)
}

// kept returns all that is kept.
func (h *house) kept(c access.Caller, types ...string) (all []*events.Event) {
	h.t.Helper()
	err := h.log.Follow(h.t.Context(), c, events.Query{After: events.Oldest, Once: true, Types: types}, events.Follower{
		Begun: func(string, bool) error { return nil },
		Told:  func(some []*events.Event, _ string) error { all = append(all, some...); return nil },
		Gap:   func(string) error { return errors.New("a gap") },
	})
	must(h.t, err)
	return all
}

func lines(all []*events.Event) (out []string) {
	for _, e := range all {
		out = append(out, line(e))
	}
	return out
}

func TestEachChangeOfARecordIsTold(t *testing.T) {
	h := start(t, events.Options{})
	ctx := t.Context()
	box, _, err := h.Engine.Create(ctx, alice, engine.CreateRequest{Key: "work", Env: map[string]string{"E": "a-value"}})
	must(t, err)
	for range 3 { // uses are no changes
		_, err = h.Engine.Exec(ctx, alice, "work", engine.ExecRequest{Shell: "true"}, nil)
		must(t, err)
	}
	_, err = h.Engine.Update(ctx, alice, "work", update.Patch{Metadata: &map[string]string{"a": "b"}})
	must(t, err)
	_, err = h.Engine.Stop(ctx, alice, "work")
	must(t, err)
	_, err = h.Engine.Start(ctx, alice, "work")
	must(t, err)
	_, err = h.Engine.CreateSnapshot(ctx, alice, "work", engine.SnapshotRequest{Name: "first"})
	must(t, err)
	_, err = volume.NewService(h.Engine).CreateVolume(ctx, alice, volume.Request{Name: "data"})
	must(t, err)
	must(t, volume.NewService(h.Engine).DeleteVolume(ctx, alice, "data"))
	must(t, h.Engine.Delete(ctx, alice, "work"))
	want := []string{
		"sandbox.created work creating by alice",
		"sandbox.started work running by alice",
		"sandbox.updated work running by alice",
		"sandbox.updated work stopping by ",
		"sandbox.stopped work stopped by alice",
		"sandbox.updated work starting by ",
		"sandbox.started work running by alice",
		"snapshot.created first creating by ",
		"snapshot.ready first ready by alice",
		"volume.created data creating by ",
		"volume.ready data ready by alice",
		"volume.updated data deleting by ",
		"volume.deleted data deleting by alice",
		"sandbox.updated work deleting by ",
		"sandbox.deleted work deleted by alice",
	}
	all := h.kept(alice)
	if diff := cmp.Diff(want, lines(all)); diff != "" {
		t.Error(diff)
	}
	for i, e := range all {
		if !slices.Contains(events.Types(), e.Type) || strings.HasPrefix(e.Type, "sandbox.") && e.Subject != string(box.ID) || i > 0 && e.Seq <= all[i-1].Seq {
			t.Errorf("got %+v", e)
		}
		if strings.Contains(string(e.Object), "a-value") {
			t.Errorf("a value is in %s", e.Object)
		}
	}
	if got := lines(h.kept(alice, "volume.ready", "snapshot")); !slices.Equal(got, []string{want[7], want[8], want[10]}) {
		t.Errorf("of two types: got %v", got)
	}
}

func TestWhatIsNotCommittedIsNotTold(t *testing.T) {
	h := start(t, events.Options{})
	box, _, err := h.Engine.Create(t.Context(), alice, engine.CreateRequest{Key: "work"})
	must(t, err)
	before := len(h.kept(alice))
	never := errors.New("never")
	err = h.log.Store().Update(t.Context(), func(tx store.Tx) error {
		s, err := tx.Sandboxes().Get(box.ID)
		must(t, err)
		s.State = sandbox.Stopping
		must(t, tx.Sandboxes().Update(s))
		return never
	})
	if !errors.Is(err, never) || len(h.kept(alice)) != before {
		t.Errorf("got %v, and %v", err, lines(h.kept(alice)))
	}
}

// follow follows in the background. Each event comes by the channel; a gap is one without a type.
func (h *house) follow(c access.Caller, q events.Query) (told chan *events.Event, begun chan string, end func() error) {
	h.t.Helper()
	told, begun = make(chan *events.Event, 1000), make(chan string, 10)
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	log := h.log
	go func() {
		ended <- log.Follow(ctx, c, q, events.Follower{
			Begun: func(id string, gap bool) error {
				if gap {
					id = "gap " + id
				}
				begun <- id
				return nil
			},
			Told: func(some []*events.Event, _ string) error {
				for _, e := range some {
					told <- e
				}
				return nil
			},
			Gap: func(id string) error { told <- &events.Event{ID: id}; return nil },
		})
	}()
	return told, begun, func() error { cancel(); return <-ended }
}

// next waits for the next of a channel.
func next[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatalf("there is no %s", what)
	}
	return v
}

func TestFollowersGoOnBehindWhatTheySaw(t *testing.T) {
	h := start(t, events.Options{})
	ctx := t.Context()
	told, begun, end := h.follow(alice, events.Query{})
	if id := next(t, "beginning", begun); id != "0-0" {
		t.Errorf("of an empty log: got %q", id)
	}
	_, _, err := h.Engine.Create(ctx, alice, engine.CreateRequest{Key: "one"})
	must(t, err)
	first := next(t, "event", told)
	second := next(t, "event", told)
	if got := lines([]*events.Event{first, second}); !slices.Equal(got, []string{"sandbox.created one creating by alice", "sandbox.started one running by alice"}) {
		t.Errorf("got %v", got)
	}
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	// While it is away something happens, and the server is another one.
	_, err = h.Engine.Stop(ctx, alice, "one")
	must(t, err)
	h.Restart()
	told, begun, end = h.follow(alice, events.Query{After: second.ID, Types: []string{"sandbox.stopped", "sandbox.started"}})
	if id := next(t, "beginning", begun); id != second.ID {
		t.Errorf("got %q", id)
	}
	if got := line(next(t, "event", told)); got != "sandbox.stopped one stopped by alice" {
		t.Errorf("got %s", got)
	}
	_, err = h.Engine.Start(ctx, alice, "one")
	must(t, err)
	if got := line(next(t, "event", told)); got != "sandbox.started one running by alice" {
		t.Errorf("got %s", got)
	}
	_ = end()

	// An event of another server, which had the same number.
	number, _, _ := strings.Cut(second.ID, "-")
	for _, id := range []string{number + "-zzz", "999999-abc", number} {
		_, begun, end = h.follow(alice, events.Query{After: id})
		all := h.kept(alice)
		if got := next(t, "beginning", begun); got != "gap "+all[len(all)-1].ID {
			t.Errorf("behind %s: got %q", id, got)
		}
		_ = end()
	}
	for _, id := range []string{"x", "-1-a", "99999999999999999999-a", strings.Repeat("9", 1<<20)} {
		if err := h.log.Follow(ctx, alice, events.Query{After: id}, events.Follower{}); !fault.Is(err, fault.Invalid) || len(err.Error()) > 1000 {
			t.Errorf("behind %.20s: got %v", id, err)
		}
	}
}

// TestABeatComesBetweenEvents: also while they come without a pause.
func TestABeatComesBetweenEvents(t *testing.T) {
	h := start(t, events.Options{})
	enough := errors.New("enough")
	beats, told := 0, 0
	f := events.Follower{
		Begun: func(string, bool) error { return nil },
		Told:  func(all []*events.Event, _ string) error { told += len(all); return nil },
		Gap:   func(string) error { return nil },
		Every: time.Millisecond,
		Beat: func() error {
			if beats++; beats <= 3 {
				_, _, err := h.Engine.Create(t.Context(), alice, engine.CreateRequest{Key: fmt.Sprint("box-", beats)})
				return err
			}
			if told == 0 {
				return nil
			}
			return enough
		},
	}
	if err := h.log.Follow(t.Context(), alice, events.Query{}, f); err != enough {
		t.Errorf("it ends with %v after %d beats and %d events", err, beats, told)
	}
}

func TestProjectsSeeTheirOwn(t *testing.T) {
	h := start(t, events.Options{Most: 3})
	ctx := t.Context()
	bob := caller("bobs", access.SandboxesRead, access.SandboxesWrite)
	root := caller(access.DefaultProject, access.ServerAdmin)
	_, _, err := h.Engine.Create(ctx, alice, engine.CreateRequest{Key: "hers"})
	must(t, err)
	_, _, err = h.Engine.Create(ctx, bob, engine.CreateRequest{Key: "his"})
	must(t, err)
	must(t, h.log.Store().Update(ctx, func(tx store.Tx) error {
		return tx.Templates().Insert(&template.Template{ID: "tmpl_x", Name: "all", Project: template.Server, Status: template.Ready, CreatedAt: time.Now()})
	}))
	for _, c := range []struct {
		who  access.Caller
		q    events.Query
		want []string
	}{
		{alice, events.Query{}, []string{"hers", "hers", "all"}},
		{bob, events.Query{}, []string{"his", "his", "all"}},
		{bob, events.Query{Project: "bobs"}, []string{"his", "his", "all"}},
		{root, events.Query{Project: "bobs"}, []string{"his", "his", "all"}},
		{root, events.Query{Project: "*"}, []string{"hers", "hers", "his", "his", "all"}},
	} {
		var got []string
		c.q.After, c.q.Once = events.Oldest, true
		must(t, h.log.Follow(ctx, c.who, c.q, events.Follower{
			Begun: func(string, bool) error { return nil },
			Told: func(some []*events.Event, _ string) error {
				for _, e := range some {
					got = append(got, strings.Fields(line(e))[1])
				}
				return nil
			},
		}))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s of %q: got %v", c.who.Project, c.q.Project, got)
		}
	}
	for name, c := range map[string]struct {
		who  access.Caller
		q    events.Query
		code fault.Code
	}{
		"another's":      {bob, events.Query{Project: access.DefaultProject}, fault.Denied},
		"all":            {alice, events.Query{Project: "*"}, fault.Denied},
		"without scopes": {caller("bobs"), events.Query{}, fault.Denied},
		"no type":        {bob, events.Query{Types: []string{"sandbox.started", "exec"}}, fault.Invalid},
	} {
		if err := h.log.Follow(ctx, c.who, c.q, events.Follower{}); !fault.Is(err, c.code) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for range 3 {
		_, begun, end := h.follow(bob, events.Query{})
		next(t, "beginning", begun)
		defer func() { _ = end() }()
	}
	if err := h.log.Follow(ctx, alice, events.Query{}, events.Follower{}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("a fourth: got %v", err)
	}
}

// TestWhoIsTooSlowIsToldOfTheGap: old events are deleted in batches, also while it catches up, so that it may meet several.
func TestWhoIsTooSlowIsToldOfTheGap(t *testing.T) {
	const keep = 100
	h := start(t, events.Options{Keep: keep})
	ctx := t.Context()
	v := &sandbox.Volume{ID: sandbox.NewID(), Project: alice.Project, Name: "v", Runtime: "memory", State: sandbox.VolumeReady, CreatedAt: time.Now()}
	must(t, h.log.Store().Update(ctx, func(tx store.Tx) error { return tx.Volumes().Insert(v) }))
	stuck, goOn := make(chan struct{}), make(chan struct{})
	var seen []int64
	gaps := make(map[int64]bool) // the last event that was seen before each
	ended := make(chan error, 1)
	last := 0
	go func() {
		ended <- h.log.Follow(ctx, alice, events.Query{After: events.Oldest}, events.Follower{
			Begun: func(string, bool) error { return nil },
			Told: func(some []*events.Event, _ string) error {
				if len(seen) == 0 {
					close(stuck)
					<-goOn
				}
				for _, e := range some {
					seen = append(seen, e.Seq)
				}
				if seen[len(seen)-1] >= int64(last) {
					return errEnough
				}
				return nil
			},
			Gap: func(string) error { gaps[seen[len(seen)-1]] = true; return nil },
		})
	}()
	next(t, "first event", stuck)
	const more = 4096
	for range more / 64 {
		must(t, h.log.Store().Update(ctx, func(tx store.Tx) error {
			return errors.Join(add(tx, 64), tx.Volumes().Update(v))
		}))
	}
	var oldest, newest int64
	h.Await(t, "the old ones to go", func() bool {
		must(t, h.Store.View(ctx, func(tx store.Tx) (err error) { oldest, newest, err = tx.Changes().Bounds(); return err }))
		return oldest > 1500
	})
	last = int(newest)
	close(goOn)
	if err := next(t, "end", ended); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if len(gaps) == 0 || len(seen) > 3000 {
		t.Errorf("got %d gaps and %d events, %d to %d are kept", len(gaps), len(seen), oldest, newest)
	}
	for i, n := range seen[1:] {
		if before := seen[i]; n <= before || gaps[before] != (n > before+1) {
			t.Errorf("%d comes behind %d, and it is %v that it was told of a gap", n, before, gaps[before])
		}
	}
}

// add adds events of alice's.
func add(tx store.Tx, n int) (err error) {
	for range n {
		err = errors.Join(err, tx.Changes().Append(&store.Change{Project: alice.Project, Type: "volume.updated", At: time.Now(), Subject: "v", Object: []byte("{}")}))
	}
	return err
}

// TestAGapWithinWhatIsInMemoryIsTold: more events than are kept came between a look at what is new and the deletion of what is old.
func TestAGapWithinWhatIsInMemoryIsTold(t *testing.T) {
	s := enginetest.Start(t, t.TempDir())
	log := events.New(s.Store, events.Options{Keep: 100})
	ctx := t.Context()
	more := func(n int) {
		t.Helper()
		must(t, s.Store.Update(ctx, func(tx store.Tx) error { return add(tx, n) }))
	}
	more(10)
	var told []string
	must(t, log.Follow(ctx, alice, events.Query{After: events.Oldest, Once: true}, events.Follower{
		Begun: func(string, bool) error {
			must(t, log.Load(ctx))
			more(300)
			log.Prune(ctx)
			must(t, log.Load(ctx))
			return nil
		},
		Told: func(some []*events.Event, _ string) error {
			told = append(told, fmt.Sprintf("%d to %d", some[0].Seq, some[len(some)-1].Seq))
			return nil
		},
		Gap: func(string) error { told = append(told, "a gap"); return nil },
	}))
	if want := []string{"a gap", "211 to 310"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
}
