// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/bench/tally"
	"sandpit.dev/internal/leaktest"
)

// callBounds are those of one create, one command in a sandbox that runs, and one delete: medians
// of system calls. What waits, and Go's own bookkeeping of threads, is not counted: it is
// as much as the machine is busy.
var callBounds = []bound{
	{"create/server-calls", 225, 290, "the server's own, before the answer and behind it on the same processors"},
	{"create/script-calls", 128, 170, "namespaces and mounts, made by bare children of the server: lists of calls that do not vary"},
	{"create/agent-calls", 270, 350, "of process 1 until it answers; half of them are Go's looks at signals"},
	{"create/mounts", 63, 85, "mounts and what configures them, by whoever"},
	{"create/processes", 3, 4, "process 1, those that make the inside, and what joins their namespaces"},
	{"create/opens", 55, 70, "files opened, by whoever; twelve of them for what programs are told of their limits"},
	{"create/database-writes", 64, 74, "two for each page of two commits, intent and result, with the row of the idempotency key and its answer, what the project used, and two rows of the audit log with their indexes"},
	{"create/flushes", 0, 0, "none is waited for: a syncer follows"},

	{"exec/server-calls", 60, 70, "more than half of them are the two commits, with the idempotency key and its answer, and the row of the audit log"},
	{"exec/agent-calls", 56, 73, "of process 1"},
	{"exec/child-calls", 11, 14, "of what becomes the command, until it does"},
	{"exec/mounts", 0, 0, "views are made when a sandbox starts"},
	{"exec/processes", 1, 1, "the command itself: no helper is started"},
	{"exec/opens", 3, 4, "files opened by server and agent"},
	{"exec/database-writes", 34, 40, "two for each page of two commits, intent and result, with the row of the idempotency key and its answer, what the project used, and the row of the audit log with its indexes"},
	{"exec/flushes", 0, 0, "none is waited for: a syncer follows"},

	{"delete/server-calls", 168, 220, "with the layer that is emptied behind the answer"},
	{"delete/mounts", 0, 0, "what a sandbox had mounted goes with its namespace"},
	{"delete/processes", 0, 0, "nothing is started to end something"},
	{"delete/opens", 18, 24, "files opened by the server"},
	{"delete/database-writes", 34, 42, "two for each page of two commits, intent and result, of which each adds to what the project used, and the row of the audit log"},
	{"delete/flushes", 0, 0, "none is waited for: a syncer follows"},

	{"idle/server-calls-a-second", 1, 1.9, "of a server with ten sandboxes that do nothing"},
	{"idle/agent-calls", 0, 0, "of ten sandboxes that do nothing, in ten seconds, even to wait: nothing wakes them"},
}

// Which calls are what.
var (
	waiting = []string{
		"futex", "epoll_pwait", "epoll_wait", "nanosleep", "clock_nanosleep", "sched_yield", "restart_syscall", "tgkill", "getpid", "gettid",
		"rt_sigreturn", "rt_sigtimedwait", "rt_sigprocmask", "sigaltstack", "sched_getaffinity", "clone", "set_robust_list", "rseq",
		"madvise",
	}
	flushing   = []string{"fsync", "fdatasync", "sync_file_range", "syncfs", "sync", "msync"}
	mounting   = []string{"mount", "umount2", "pivot_root", "move_mount", "mount_setattr", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick"}
	opening    = []string{"open", "creat", "openat", "openat2"}
	positioned = []string{"pwrite64", "pwritev", "pwritev2"}
	everybody  = []tally.Role{tally.Root, tally.Started, tally.Program, tally.Launched}
)

const (
	guardIdle = 10 // sandboxes

	// Within guardRound a server that does nothing has looked once at each of its disks.
	guardRound = 10 * time.Second

	// What is done behind an answer is done when nothing was called for so long, or after the longest.
	guardQuiet   = 12 * time.Millisecond
	guardLongest = 400 * time.Millisecond
)

// holdCalls counts what operations of a server call.
func holdCalls(t *testing.T, o *ours) {
	counter, err := tally.Watch(o.pid)
	if err != nil {
		if tally.Unsupported(err) {
			t.Skipf("system calls cannot be counted here: %v", err)
		}
		t.Fatal(err)
	}
	defer func() {
		if err := counter.Close(); err != nil {
			t.Error(err)
		}
	}()
	g := &guardCalls{counter: counter, pid: o.pid, of: map[string][]*tally.Counts{}}
	got := map[string]float64{}
	if err := g.lives(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := g.idle(t.Context(), o, got); err != nil {
		t.Fatal(err)
	}
	g.figures(got)
	t.Logf("system calls by name, medians and means over %d lives:\n%s", guardLives, g.table())
	hold(t, callBounds, got)
}

// guardCalls collects what single operations called.
type guardCalls struct {
	counter *tally.Counter
	pid     int                        // of the server
	of      map[string][]*tally.Counts // by operation
}

// count runs an operation, and waits for what it leaves to be done.
func (g *guardCalls) count(operation string, run func() error) error {
	before := g.counter.Read()
	if err := run(); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	g.of[operation] = append(g.of[operation], g.quiet().Since(before))
	return nil
}

// quiet waits until nobody calls anything, and returns the counts. A thread that can run counts as
// busy: on a busy host it makes no calls while it waits for a processor.
func (g *guardCalls) quiet() *tally.Counts {
	last, at := g.counter.Read(), time.Now()
	for began := at; time.Since(began) < guardLongest; {
		time.Sleep(time.Millisecond)
		if now := g.counter.Read(); *now != *last {
			last, at = now, time.Now()
		}
		if time.Since(at) < guardQuiet {
			continue
		}
		if busy, err := leaktest.Runs(g.pid); err == nil && !busy {
			break
		}
		at = time.Now()
	}
	return last
}

func (g *guardCalls) lives(ctx context.Context, o *ours) error {
	for range guardLives {
		g.quiet()
		var id string
		if err := g.count("create", func() error {
			box, _, err := o.client.Create(ctx, v1.CreateSandbox{})
			if err == nil {
				id = box.ID
			}
			return err
		}); err != nil {
			return err
		}
		if err := o.exec(ctx, id, byArgv); err != nil { // the first has more to do
			return err
		}
		g.quiet()
		for range guardExecs {
			if err := g.count("exec", func() error { return o.exec(ctx, id, byArgv) }); err != nil {
				return err
			}
		}
		if err := g.count("delete", func() error { return o.client.Delete(ctx, id) }); err != nil {
			return err
		}
	}
	return nil
}

// idle counts what is called while nobody asks for anything.
func (g *guardCalls) idle(ctx context.Context, o *ours, got map[string]float64) error {
	for range guardIdle {
		box, _, err := o.client.Create(ctx, v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0))})
		if err != nil {
			return err
		}
		if err := o.exec(ctx, box.ID, byArgv); err != nil {
			return err
		}
	}
	// What was put off is done, the connection of a next call is let go of, and Go's runtime is
	// at rest.
	if err := sleep(ctx, 4*calm); err != nil {
		return err
	}
	// On a busy host that takes longer, so the least of three rounds is taken.
	const server, agents = "idle/server-calls-a-second", "idle/agent-calls"
	for round := range 3 {
		before, began := g.counter.Read(), time.Now()
		if err := sleep(ctx, guardRound); err != nil {
			return err
		}
		calls := g.counter.Read().Since(before)
		a := float64(calls.Total(tally.Root)-calls.Of(waiting, tally.Root)) / time.Since(began).Seconds()
		of := float64(calls.Total(tally.Program, tally.Launched, tally.Below))
		if round == 0 || a < got[server] {
			g.of["idle"], got[server] = []*tally.Counts{calls}, a
		}
		if round == 0 || of < got[agents] {
			got[agents] = of
		}
		if got[server] <= mostOf(server) && got[agents] <= mostOf(agents) {
			break
		}
	}
	return nil
}

// mostOf returns the bound of a figure of calls.
func mostOf(name string) float64 {
	return callBounds[slices.IndexFunc(callBounds, func(b bound) bool { return b.name == name })].most
}

// madeAhead are the figures of a create to which namespaces for the next create add, on a busy host
// in most of the lives. What a create calls itself hardly varies: of these the least is taken.
var madeAhead = []string{"server-calls", "script-calls", "mounts", "processes"}

// figures sums up: medians over the operations.
func (g *guardCalls) figures(got map[string]float64) {
	all := func(names []string, roles ...tally.Role) func(*tally.Counts) uint64 {
		return func(c *tally.Counts) uint64 { return c.Of(names, roles...) }
	}
	working := func(roles ...tally.Role) func(*tally.Counts) uint64 {
		return func(c *tally.Counts) uint64 { return c.Total(roles...) - c.Of(waiting, roles...) }
	}
	common := map[string]func(*tally.Counts) uint64{
		"server-calls": working(tally.Root), "mounts": all(mounting, everybody...),
		"processes": func(c *tally.Counts) uint64 { return c.Births(everybody...) },
		"opens":     all(opening, everybody...), "database-writes": all(positioned, tally.Root), "flushes": all(flushing, everybody...),
	}
	own := map[string]map[string]func(*tally.Counts) uint64{
		"create": {"script-calls": working(tally.Started), "agent-calls": working(tally.Program)},
		"exec":   {"agent-calls": working(tally.Program), "child-calls": working(tally.Launched)},
		"delete": {},
	}
	for operation, more := range own {
		for _, measures := range []map[string]func(*tally.Counts) uint64{common, more} {
			for name, of := range measures {
				values := make([]uint64, 0, len(g.of[operation]))
				for _, c := range g.of[operation] {
					values = append(values, of(c))
				}
				slices.Sort(values)
				got[operation+"/"+name] = float64(rank(values, .5))
				// A flush that is waited for is in each of the operations, the syncer's own in half of them.
				if operation == "create" && slices.Contains(madeAhead, name) || name == "flushes" {
					got[operation+"/"+name] = float64(values[0])
				}
			}
		}
	}
}

// table tells all that was called, by name, the most first.
func (g *guardCalls) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, operation := range []string{"create", "exec", "delete", "idle"} {
		counts := g.of[operation]
		for role := range append(everybody, tally.Below) {
			type row struct {
				name         string
				median, mean float64
			}
			var rows []row
			for n := range counts[0][role] {
				values := make([]uint64, len(counts))
				var sum uint64
				for i, c := range counts {
					values[i] = c[role][n]
					sum += values[i]
				}
				if sum > 0 {
					slices.Sort(values)
					rows = append(rows, row{tally.Name(n), float64(rank(values, .5)), float64(sum) / float64(len(values))})
				}
			}
			slices.SortFunc(rows, func(a, b row) int { return int(b.mean*1000) - int(a.mean*1000) })
			for _, r := range rows {
				fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\t%.1f\t\n", operation, tally.Role(role), r.name, r.median, r.mean)
			}
		}
	}
	_ = w.Flush() // into memory
	return b.String()
}
