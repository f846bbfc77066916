// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Process is a process of a sandbox, as the host tells of it. Its name is the process's to choose.
type Process struct {
	runtime.Process
	CPUs float64 // processors in use since the reading before, or since it began
}

// Processes is what runs in a sandbox.
type Processes struct {
	At    time.Time // zero: it is not up
	Items []Process // who uses most first: processors, then memory
	Total int       // of which Items may hold fewer
}

// MaxProcesses bounds the processes that are told.
const MaxProcesses = 500

// lately is how long a reading is compared with the next.
const lately = time.Minute

// readings are the last processes of the sandboxes that were asked about.
type readings struct {
	mu sync.Mutex
	of map[sandbox.ID]*reading
}

// reading is the last processes of one sandbox.
type reading struct {
	mu   sync.Mutex
	last Processes
}

// get returns that of a sandbox. Those that nobody asked about lately go.
func (r *readings) get(id sandbox.ID, now time.Time) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, one := range r.of {
		if other != id && one.mu.TryLock() {
			if now.Sub(one.last.At) > lately {
				delete(r.of, other)
			}
			one.mu.Unlock()
		}
	}
	if r.of == nil {
		r.of = make(map[sandbox.ID]*reading)
	}
	if r.of[id] == nil {
		r.of[id] = &reading{}
	}
	return r.of[id]
}

// Processes returns what runs in a sandbox now, at most so many. It is no use of the sandbox, starts none, and asks nothing of what is
// inside. A reading is a second old at most, and made once for all who ask.
func (s *Service) Processes(ctx context.Context, c access.Caller, ref string, most int) (Processes, error) {
	if most < 1 || most > MaxProcesses {
		return Processes{}, fault.InvalidField("processes", "%d is outside 1 to %d", most, MaxProcesses)
	}
	box, err := s.find(ctx, c, ref)
	if err != nil || box.State != sandbox.Running && box.State != sandbox.Paused {
		return Processes{}, err
	}
	r := s.readings.get(box.ID, s.now())
	r.mu.Lock()
	defer r.mu.Unlock()
	now := s.now()
	if age := now.Sub(r.last.At); age < 0 || age >= fresh {
		found, err := s.processes(ctx, box)
		if fault.Is(err, fault.State) || fault.Is(err, fault.NotFound) {
			return Processes{}, nil // it went down meanwhile
		}
		if err != nil {
			return Processes{}, err
		}
		r.last = rates(r.last, found, now)
	}
	out := r.last
	out.Items = slices.Clone(out.Items[:min(most, len(out.Items))])
	return out, nil
}

func (s *Service) processes(ctx context.Context, box *sandbox.Sandbox) ([]runtime.Process, error) {
	i, err := s.open(ctx, box)
	if err != nil {
		return nil, err
	}
	m, ok := i.(runtime.ProcessMeter)
	if !ok {
		return nil, fault.New(fault.Unsupported, "the runtime %s does not tell of processes from outside", box.Runtime).
			WithRemedy("run ps in the sandbox, which is a use of it")
	}
	return m.Processes(ctx)
}

// rates is a reading with what each process used since the one before, in order.
func rates(before Processes, found []runtime.Process, now time.Time) Processes {
	was := make(map[int]*Process, len(before.Items))
	passed := now.Sub(before.At)
	if passed > 0 && passed < lately {
		for i := range before.Items {
			was[before.Items[i].PID] = &before.Items[i]
		}
	}
	out := Processes{At: now, Total: len(found), Items: make([]Process, 0, len(found))}
	for _, p := range found {
		one := Process{Process: p}
		// Else the number is another's by now.
		if old := was[p.PID]; old != nil && p.CPU >= old.CPU && (p.Age-old.Age-passed).Abs() < time.Second {
			one.CPUs = (p.CPU - old.CPU).Seconds() / passed.Seconds()
		} else if p.Age > 0 {
			one.CPUs = p.CPU.Seconds() / p.Age.Seconds()
		}
		out.Items = append(out.Items, one)
	}
	slices.SortFunc(out.Items, func(a, b Process) int {
		return cmp.Or(cmp.Compare(b.CPUs, a.CPUs), cmp.Compare(b.MemoryBytes, a.MemoryBytes), cmp.Compare(a.PID, b.PID))
	})
	return out
}
