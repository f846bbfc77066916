// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"sandpit.dev/doctor"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// doctorCloses is how long the end of a server waits for checks that go on.
const doctorCloses = 2 * time.Second

// newDoctor returns what a running server tells of itself and of its host to who asks. Nothing of it repairs or tries
// anything out. What runtimes can do is asked as [engine.Engine.Info] does.
func newDoctor(cfg Config, eng *engine.Engine, db store.Store, drivers map[string]runtime.Driver) *doctor.Service {
	var all []doctor.Check
	for _, l := range cfg.hostLooks() {
		all = append(all, doctor.Check{Name: l.name, Look: func(ctx context.Context) []doctor.Finding { return findingsOf([]Check{l.do(ctx)}) }})
	}
	add := func(name string, do func(context.Context) []Check) {
		all = append(all, doctor.Check{Name: name, Look: func(ctx context.Context) []doctor.Finding { return findingsOf(do(ctx)) }})
	}
	add("data", func(context.Context) []Check { return checkPrivate(cfg) })
	add("records", func(context.Context) []Check { return []Check{checkRecords(db)} })
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		if d, ok := drivers[name].(runtime.DiskReporter); ok {
			add(name+"/store", func(context.Context) []Check { return []Check{checkStore(name+"/store", d.Disk())} })
		}
	}
	add("sandboxes", func(ctx context.Context) []Check { return []Check{checkSandboxes(ctx, db)} })
	add("runtimes", func(ctx context.Context) []Check { return checkRunning(ctx, eng) })
	return doctor.New(all, doctor.Options{})
}

// closeDoctor ends the checks.
func closeDoctor(d *doctor.Service, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), doctorCloses)
	defer cancel()
	report(log, "end the checks of the host", d.Close(ctx))
}

func findingsOf(checks []Check) []doctor.Finding {
	out := make([]doctor.Finding, len(checks))
	for n, c := range checks {
		out[n] = doctor.Finding{Name: c.Name, Status: c.Status, Detail: c.Detail, Remedy: c.Remedy}
	}
	return out
}

// checkPrivate looks who may write the data directory and read the secrets in it. What is found is mended by
// [Repair] alone.
func checkPrivate(cfg Config) []Check {
	r := new(repair)
	r.directory("data", cfg.Data)
	for _, name := range secretFiles() {
		r.secret("data/"+name, filepath.Join(cfg.Data, name))
	}
	if len(r.checks) == 0 {
		return []Check{ok("data", "%s, and the secrets in it, are the server's alone", cfg.Data)}
	}
	return r.checks
}

func checkRecords(db store.Store) Check {
	if err := db.Room(); err != nil {
		return refused("records", Failed, err)
	}
	return ok("records", "they take new work")
}

func checkStore(name string, d runtime.Disk) Check {
	for _, err := range []error{d.Failed, d.Full} {
		if err != nil {
			return refused(name, Failed, err)
		}
	}
	return ok(name, "%d MiB of %d MiB are free; sandboxes may take %d MiB more", d.FreeBytes>>20, d.SizeBytes>>20, d.RoomBytes>>20)
}

// checkSandboxes tells of sandboxes that failed, whosever they are: how many, and not which.
func checkSandboxes(ctx context.Context, db store.Store) Check {
	const name = "sandboxes"
	var counts map[sandbox.State]int
	err := db.View(ctx, func(tx store.Tx) (err error) {
		counts, err = tx.Sandboxes().Count(store.SandboxQuery{})
		return err
	})
	if err != nil {
		return refused(name, Warned, err)
	}
	if n := counts[sandbox.Failed]; n > 0 {
		return warning(name, "sandpit admin ls --status failed lists them; each says why, and start or rollback may bring it back", "%d failed", n)
	}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return ok(name, "%d, of which %d run; none failed", sum, counts[sandbox.Running])
}

// checkRunning tells of the runtimes and the pools of a running engine.
func checkRunning(ctx context.Context, eng *engine.Engine) []Check {
	info, err := eng.Info(ctx, system())
	if err != nil {
		return []Check{refused("server", Failed, err)}
	}
	checks := []Check{ok("server", "version %s, since %s", info.Version, info.Since.UTC().Format(time.RFC3339))}
	for _, p := range info.Pools {
		c := ok("pool/"+p.Name, "%d of %d ready; %d creates got one, %d found none", p.Ready, p.Target, p.Hits, p.Misses)
		if p.Ready == 0 && p.Target > 0 {
			c.Status, c.Remedy = Warned, "see the server's log if it stays so; creates are slower meanwhile"
		}
		checks = append(checks, c)
	}
	for _, r := range info.Runtimes {
		if r.Err != nil {
			checks = append(checks, refused(r.Name, Failed, r.Err))
			continue
		}
		for _, f := range slices.Sorted(maps.Keys(r.Features)) {
			switch is := r.Features[f]; {
			case is.Supported:
				checks = append(checks, ok(r.Name+"/"+f, "works"))
			case f == string(runtime.Isolation):
				checks = append(checks, unsupported(r.Name+"/"+f, Failed, is.Why))
			default:
				checks = append(checks, unsupported(r.Name+"/"+f, Warned, is.Why))
			}
		}
	}
	return checks
}

// unsupported is [refused] in the words that are for callers.
func unsupported(name string, s CheckStatus, why error) Check {
	if why == nil {
		return refused(name, s, nil)
	}
	e := fault.As(why)
	return Check{Name: name, Status: s, Detail: e.Message, Remedy: e.Remedy}
}
